import { organizations } from "./0001_organizations.ts"
import { auditEvents } from "./0002_audit_events.ts"
import { models } from "./0003_models.ts"
import { deployments } from "./0004_deployments.ts"
import { requests } from "./0005_requests.ts"
import { administration } from "./0006_administration.ts"
import { reservations } from "./0007_reservations.ts"
import { capabilities } from "./0008_capabilities.ts"
import { requestClasses } from "./0009_request_classes.ts"
import { listFilters } from "./0010_list_filters.ts"
import { traceparent } from "./0011_traceparent.ts"
import { gpuHolds } from "./0012_gpu_holds.ts"
import { appliedResources } from "./0014_applied_resources.ts"
import { rollout } from "./0016_rollout.ts"
import { appliedModels } from "./0017_applied_models.ts"
import { operatorTerms } from "./0018_operator_terms.ts"
import { engineImage } from "./0019_engine_image.ts"
import { storedWeights } from "./0020_stored_weights.ts"
import { engineDigest } from "./0021_engine_digest.ts"
import { adapters } from "./0022_adapters.ts"
import { measuredStarts } from "./0023_measured_starts.ts"
import { engineStarts } from "./0024_engine_starts.ts"
import { frozenVerification } from "./0026_frozen_verification.ts"
import { trialLikelihood } from "./0028_trial_likelihood.ts"
import { requestFacts } from "./0030_request_facts.ts"
import { usageDays } from "./0032_usage_days.ts"
import { nodeFaults } from "./0034_node_faults.ts"
import { failedStarts } from "./0037_failed_starts.ts"
import { keptChoices } from "./0038_kept_choices.ts"
import { spendLimits } from "./0044_spend_limits.ts"
import { spendSums } from "./0045_spend_sums.ts"
import { spendAlerts } from "./0046_spend_alerts.ts"
import { deploymentProgress } from "./0048_deployment_progress.ts"
import { retiredMonths } from "./0052_retired_months.ts"
import { schemaRequirements } from "./0053_schema_requirements.ts"
import { access } from "./0054_access.ts"
import { receiptDigests } from "./0055_receipt_digests.ts"
import { quietSpendSums } from "./0056_quiet_spend_sums.ts"
import { placement } from "./0057_placement.ts"
import { spendSumOrder } from "./0058_spend_sum_order.ts"

/** All migrations by number. A migration that has landed is never edited. */
export const migrations = {
  "0001_organizations": organizations,
  "0002_audit_events": auditEvents,
  "0003_models": models,
  "0004_deployments": deployments,
  "0005_requests": requests,
  "0006_administration": administration,
  "0007_reservations": reservations,
  "0008_capabilities": capabilities,
  "0009_request_classes": requestClasses,
  "0010_list_filters": listFilters,
  "0011_traceparent": traceparent,
  "0012_gpu_holds": gpuHolds,
  "0014_applied_resources": appliedResources,
  "0016_rollout": rollout,
  "0017_applied_models": appliedModels,
  "0018_operator_terms": operatorTerms,
  "0019_engine_image": engineImage,
  "0020_stored_weights": storedWeights,
  "0021_engine_digest": engineDigest,
  "0022_adapters": adapters,
  "0023_measured_starts": measuredStarts,
  "0024_engine_starts": engineStarts,
  "0026_frozen_verification": frozenVerification,
  "0028_trial_likelihood": trialLikelihood,
  "0030_request_facts": requestFacts,
  "0032_usage_days": usageDays,
  "0034_node_faults": nodeFaults,
  "0037_failed_starts": failedStarts,
  "0038_kept_choices": keptChoices,
  "0044_spend_limits": spendLimits,
  "0045_spend_sums": spendSums,
  "0046_spend_alerts": spendAlerts,
  "0048_deployment_progress": deploymentProgress,
  "0052_retired_months": retiredMonths,
  "0053_schema_requirements": schemaRequirements,
  "0054_access": access,
  "0055_receipt_digests": receiptDigests,
  "0056_quiet_spend_sums": quietSpendSums,
  "0057_placement": placement,
  "0058_spend_sum_order": spendSumOrder
}
