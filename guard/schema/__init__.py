"""The data model: problems, solutions, results. Pure data; no torch, no numpy.

Problem, workload, solution and trace files are SOL-ExecBench's own, read and written unchanged;
``contract.json`` is our optional side file.
"""

from kernelarc.guard.schema.contract import (
    Contract,
    InputRule,
    Mutant,
    OutputTolerance,
    Precision,
    ShapeRule,
)
from kernelarc.guard.schema.definition import (
    AxisConst,
    AxisExpr,
    AxisVar,
    Definition,
    DType,
    TensorSpec,
)
from kernelarc.guard.schema.expressions import ExpressionError, evaluate, evaluate_integer
from kernelarc.guard.schema.load import (
    load_problem,
    load_solution,
    load_workloads,
    reference_id,
    reference_solution,
    solution_from_source,
)
from kernelarc.guard.schema.problem import Problem, axes_text
from kernelarc.guard.schema.results import (
    RESULT_FORMAT,
    AdmissionCheck,
    AdmissionReport,
    BenchmarkResult,
    CompileFacts,
    Correctness,
    Environment,
    Evaluation,
    Interval,
    Isolation,
    JudgeState,
    Performance,
    Verdict,
    Wall,
)
from kernelarc.guard.schema.signatures import cpp_signature, python_signature
from kernelarc.guard.schema.solution import (
    BuildSpec,
    CompileOptions,
    Hardware,
    Language,
    Solution,
    SourceFile,
    solution_id,
)
from kernelarc.guard.schema.status import BenchmarkOutcome, EvaluationStatus, trace_status
from kernelarc.guard.schema.trace import (
    Trace,
    TraceCorrectness,
    TraceEnvironment,
    TraceEvaluation,
    TracePerformance,
)
from kernelarc.guard.schema.workload import (
    CustomInput,
    RandomInput,
    SafetensorsInput,
    ScalarInput,
    ToleranceSpec,
    Workload,
)

__all__ = [
    "RESULT_FORMAT",
    "AdmissionCheck",
    "AdmissionReport",
    "AxisConst",
    "AxisExpr",
    "AxisVar",
    "BenchmarkOutcome",
    "BenchmarkResult",
    "BuildSpec",
    "CompileFacts",
    "CompileOptions",
    "Contract",
    "Correctness",
    "CustomInput",
    "DType",
    "Definition",
    "Environment",
    "Evaluation",
    "EvaluationStatus",
    "ExpressionError",
    "Hardware",
    "InputRule",
    "Interval",
    "Isolation",
    "JudgeState",
    "Language",
    "Mutant",
    "OutputTolerance",
    "Performance",
    "Precision",
    "Problem",
    "RandomInput",
    "SafetensorsInput",
    "ScalarInput",
    "ShapeRule",
    "Solution",
    "SourceFile",
    "TensorSpec",
    "ToleranceSpec",
    "Trace",
    "TraceCorrectness",
    "TraceEnvironment",
    "TraceEvaluation",
    "TracePerformance",
    "Verdict",
    "Wall",
    "Workload",
    "axes_text",
    "cpp_signature",
    "evaluate",
    "evaluate_integer",
    "load_problem",
    "load_solution",
    "load_workloads",
    "python_signature",
    "reference_id",
    "reference_solution",
    "solution_from_source",
    "solution_id",
    "trace_status",
]
