import { counter, gauge, histogram } from "@seatrial/domain"

/** Buckets for work that takes from a moment to hours. */
const long = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400]

/** Metrics of the operator's work. The metrics of its queues show whether it keeps up. */
export const operatorMetrics = {
  deployments: gauge("seatrial_operator_deployments", {
    labels: ["phase"],
    unit: "deployments",
    meaning: "Deployments that the leader manages, by phase: unfinished, serving and held ones, and finished ones until their objects are deleted"
  }),
  modelsUnavailable: gauge("seatrial_operator_models_unavailable", {
    labels: [],
    unit: "models",
    meaning: "Models that should serve but have no ready engine with traffic, as last observed by the leader; idle models do not count"
  }),
  lostWakeUps: counter("seatrial_operator_lost_wakeups_total", {
    labels: ["phase"],
    unit: "runs",
    meaning: "Runs whose next pass was more than a minute overdue and not queued, by phase. Each was enqueued again. Each indicates a bug in the operator"
  }),
  decisionsRecorded: counter("seatrial_operator_decisions_recorded_total", {
    labels: [],
    unit: "decisions",
    meaning: "Decisions that were recorded for seatrial why"
  }),
  decisionsDropped: counter("seatrial_operator_decisions_dropped_total", {
    labels: ["reason"],
    unit: "decisions",
    meaning: "Decisions that were not recorded, by reason: full (too many waited for Postgres) or refused (by Postgres). The operator's work goes on"
  }),
  failures: counter("seatrial_operator_failures_total", {
    labels: ["code"],
    unit: "deployments",
    meaning: "Deployments that failed, by the code of their failure_detail"
  }),
  movesBack: counter("seatrial_operator_moves_back_total", {
    labels: [],
    unit: "moves",
    meaning: "Models that returned to their earlier revision by themselves, because the new one failed more requests or its engines did not start"
  }),
  sentinelProbes: counter("seatrial_operator_sentinel_probes_total", {
    labels: ["outcome"],
    unit: "probes",
    meaning:
      "Probes of serving engines, by outcome: agreed or differed (from the trial), busy (the engine had other work), late (aborted), failed (no answer) or incomparable"
  }),
  sentinelUnprobed: gauge("seatrial_operator_sentinel_unprobed_seconds", {
    labels: [],
    unit: "seconds",
    meaning: "The longest time that a serving engine has been without a complete probe, because it was busy or gave no answer"
  }),
  sentinelAlarms: counter("seatrial_operator_sentinel_alarms_total", {
    labels: [],
    unit: "engines",
    meaning: "Serving engines whose probes differ from the trial so much that the engine counts as faulty"
  }),
  webhookMessages: counter("seatrial_operator_webhook_messages_total", {
    labels: ["outcome"],
    unit: "messages",
    meaning:
      "Messages to the webhook about engines whose probes differ from their trial, by outcome: accepted or failed. A failed message is sent again for a day"
  }),
  referenceJobs: gauge("seatrial_operator_reference_jobs", {
    labels: ["state"],
    unit: "Jobs",
    meaning:
      "Jobs that compute references of commits, by state: running (a node has the pod), unplaced (no node has it) or waiting (runs whose Job is not created yet because of OPERATOR_REFERENCE_JOBS or OPERATOR_REFERENCE_JOBS_PER_ORGANIZATION)"
  }),
  references: counter("seatrial_operator_references_total", {
    labels: ["outcome"],
    unit: "Jobs",
    meaning:
      "Jobs that have ended, by outcome: computed, unused (no run needed it any more), yielded (no node had room for it, and another run needed its place), not_started (no node, or ended by the cluster) or the code of the cause that is remembered"
  }),
  backgroundSeconds: histogram("seatrial_operator_background_seconds", long, {
    labels: ["kind", "outcome"],
    unit: "seconds",
    meaning: "Duration of screening, checks, measurements and benchmarks, by outcome: done, refused, unavailable or fault"
  }),
  fitError: histogram("seatrial_fit_error_ratio", [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1], {
    labels: ["host_class", "inside"],
    unit: "ratio",
    meaning: "Relative difference between the measured KV cache and the middle of its estimate. The label `inside` says whether it was within the estimate"
  }),
  benchmarkTokens: gauge("seatrial_benchmark_output_tokens_per_second", {
    labels: ["organization", "model", "concurrency"],
    unit: "tokens/s",
    meaning: "Output tokens per second of the serving revision, measured by its trial's benchmark at that concurrency; absent if the figures are not valid"
  }),
  benchmarkTtft: gauge("seatrial_benchmark_ttft_seconds", {
    labels: ["organization", "model", "concurrency", "quantile"],
    unit: "seconds",
    meaning: "Time to first token of the serving revision in its trial's benchmark; a quantile is absent if the sample is too small"
  }),
  benchmarkTpot: gauge("seatrial_benchmark_tpot_seconds", {
    labels: ["organization", "model", "concurrency", "quantile"],
    unit: "seconds",
    meaning: "Time per output token of the serving revision in its trial's benchmark"
  }),
  modelDemand: gauge("seatrial_model_demand_requests", {
    labels: ["organization", "model"],
    unit: "requests",
    meaning: "Requests that run or wait, as gateways reported last. Only for models whose number of engines the autoscaler sets"
  }),
  engineCapacity: gauge("seatrial_engine_capacity_requests", {
    labels: ["organization", "model"],
    unit: "requests",
    meaning: "Requests that one engine of an autoscaled model processes at once, as its trial's benchmark measured; 0 if it was not measured"
  }),
  modelEngines: gauge("seatrial_model_engines", {
    labels: ["organization", "model", "state"],
    unit: "engines",
    meaning: "Engines of an autoscaled model by state: desired, granted (with GPUs) or ready (with traffic)"
  }),
  gpusHeld: gauge("seatrial_gpus_held", { labels: ["organization", "host_class"], unit: "GPUs", meaning: "GPUs that engine pods hold" }),
  gpuSeconds: counter("seatrial_gpu_seconds_total", {
    labels: ["organization", "host_class"],
    unit: "seconds",
    meaning:
      "GPU-seconds held while this operator led, with a resolution of ten seconds; exact figures by deployment are in the database (seatrial admin usage gpu)"
  }),
  deploymentGpuSeconds: counter("seatrial_deployment_gpu_seconds_total", {
    labels: ["organization", "deployment"],
    unit: "seconds",
    meaning: "GPU-seconds by deployment, for deployments that hold GPUs or released them within the last ten minutes"
  })
}
