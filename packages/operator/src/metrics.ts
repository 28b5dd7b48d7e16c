import { counter, gauge, histogram } from "@seatrial/domain"

/** Buckets for work that takes from a moment to hours. */
const long = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400]

/** Metrics of the operator's work. The metrics of its queues show whether it keeps up. */
export const operatorMetrics = {
  deployments: gauge("seatrial_operator_deployments", {
    labels: ["phase"],
    unit: "deployments",
    meaning: "Deployments that the leader attends to, by phase: the unfinished, those that serve or are held, and finished ones until they are cleaned up"
  }),
  modelsUnavailable: gauge("seatrial_operator_models_unavailable", {
    labels: [],
    unit: "models",
    meaning: "Models that should serve and have no engine that is ready and may have traffic, as the leader saw them last; those that idle are none of them"
  }),
  lostWakeUps: counter("seatrial_operator_lost_wakeups_total", {
    labels: ["phase"],
    unit: "runs",
    meaning: "Runs whose next pass was more than a minute late and was in no queue, by phase. Each was enqueued then. Each is a fault of the operator"
  }),
  phaseSeconds: histogram("seatrial_operator_phase_seconds", long, {
    labels: ["phase", "outcome"],
    unit: "seconds",
    meaning: "How long a deployment was in a phase that the operator ended: passed, requeued or failed"
  }),
  failures: counter("seatrial_operator_failures_total", {
    labels: ["code"],
    unit: "deployments",
    meaning: "Deployments that failed, by the code of their failure_detail"
  }),
  backgroundSeconds: histogram("seatrial_operator_background_seconds", long, {
    labels: ["kind", "outcome"],
    unit: "seconds",
    meaning: "How long screening, checks, measurements and benchmarks took: done, refused, unavailable or fault"
  }),
  fitError: histogram("seatrial_fit_error_ratio", [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], {
    labels: ["host_class", "inside"],
    unit: "ratio",
    meaning: "How far the KV cache that an engine had was from the middle of its estimate, as a share of it; inside: whether within the estimate"
  }),
  benchmarkTokens: gauge("seatrial_benchmark_output_tokens_per_second", {
    labels: ["organization", "model", "concurrency"],
    unit: "tokens/s",
    meaning: "Output tokens a second of what a model serves, as its trial's benchmark measured them at that concurrency; none where the figures are void"
  }),
  benchmarkTtft: gauge("seatrial_benchmark_ttft_seconds", {
    labels: ["organization", "model", "concurrency", "quantile"],
    unit: "seconds",
    meaning: "Time to first token of the same benchmark; a quantile is there where the sample bounds it"
  }),
  benchmarkTpot: gauge("seatrial_benchmark_tpot_seconds", {
    labels: ["organization", "model", "concurrency", "quantile"],
    unit: "seconds",
    meaning: "Time per output token of the same benchmark"
  }),
  gpusHeld: gauge("seatrial_gpus_held", { labels: ["organization", "host_class"], unit: "GPUs", meaning: "GPUs that engine pods hold" }),
  gpuSeconds: counter("seatrial_gpu_seconds_total", {
    labels: ["organization", "host_class"],
    unit: "seconds",
    meaning: "GPU-seconds held while this operator led, to ten seconds; exact ones by deployment are in the database (seatrial admin usage gpu)"
  }),
  deploymentGpuSeconds: counter("seatrial_deployment_gpu_seconds_total", {
    labels: ["organization", "deployment"],
    unit: "seconds",
    meaning: "The same by deployment, of those that hold GPUs or gave them back within the last ten minutes"
  })
}
