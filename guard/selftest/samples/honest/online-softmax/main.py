# One pass over blocks of columns, with a running maximum and sum; two outputs.
import torch

BLOCK = 128


def run(logits, labels, loss, dlogits):
    highest = torch.full_like(loss, float("-inf"))
    total = torch.zeros_like(loss)
    for block in logits.split(BLOCK, dim=1):
        higher = torch.maximum(highest, block.amax(1))
        weights = torch.exp(block - higher.unsqueeze(1))
        total = total * torch.exp(highest - higher) + weights.sum(1)
        highest = higher
    counted, target = labels >= 0, labels.clamp(min=0).unsqueeze(1)
    normaliser = highest + total.log()
    loss.copy_((normaliser - logits.gather(1, target).squeeze(1)) * counted)
    torch.exp(logits - normaliser.unsqueeze(1), out=dlogits)
    dlogits.scatter_add_(1, target, -torch.ones_like(target, dtype=torch.float32))
    dlogits.mul_(counted.unsqueeze(1))
