/**
 * The migrations of version 0.1.0, the oldest version whose databases can be upgraded. Their files no longer exist:
 * `baseline.sql` contains their result, and every database of that version has them.
 */
export const releaseMigrations = [
  "0001_organizations",
  "0002_audit_events",
  "0003_models",
  "0004_deployments",
  "0005_requests",
  "0006_administration",
  "0007_reservations",
  "0008_capabilities",
  "0009_request_classes",
  "0010_list_filters",
  "0011_traceparent",
  "0012_gpu_holds",
  "0014_applied_resources",
  "0016_rollout",
  "0017_applied_models",
  "0018_operator_terms",
  "0019_engine_image",
  "0020_stored_weights",
  "0021_engine_digest",
  "0022_adapters",
  "0023_measured_starts",
  "0024_engine_starts",
  "0026_frozen_verification",
  "0028_trial_likelihood",
  "0030_request_facts",
  "0032_usage_days",
  "0034_node_faults",
  "0037_failed_starts",
  "0038_kept_choices"
] as const
