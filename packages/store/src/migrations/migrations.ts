import { decisions } from "./0059_decisions.ts"
import { replicas } from "./0060_replicas.ts"
import { appliedReplicas } from "./0061_applied_replicas.ts"
import { autoscaling } from "./0062_autoscaling.ts"
import { appliedScaling } from "./0063_applied_scaling.ts"
import { modelEngines } from "./0064_model_engines.ts"
import { waysBack } from "./0065_ways_back.ts"
import { modelReferences } from "./0066_model_references.ts"
import { sentinels } from "./0067_sentinels.ts"
import { suspicionEngines } from "./0068_suspicion_engines.ts"
import { operatorReferences } from "./0069_operator_references.ts"
import { requestEngines } from "./0071_request_engines.ts"
import { sentAlarms } from "./0072_sent_alarms.ts"
import { spendLimits } from "./upgrade/0044_spend_limits.ts"
import { spendSums } from "./upgrade/0045_spend_sums.ts"
import { spendAlerts } from "./upgrade/0046_spend_alerts.ts"
import { deploymentProgress } from "./upgrade/0048_deployment_progress.ts"
import { retiredMonths } from "./upgrade/0052_retired_months.ts"
import { schemaRequirements } from "./upgrade/0053_schema_requirements.ts"
import { access } from "./upgrade/0054_access.ts"
import { receiptDigests } from "./upgrade/0055_receipt_digests.ts"
import { quietSpendSums } from "./upgrade/0056_quiet_spend_sums.ts"
import { placement } from "./upgrade/0057_placement.ts"
import { spendSumOrder } from "./upgrade/0058_spend_sum_order.ts"

/**
 * All migrations since version 0.1.0 by number. A migration that has landed is never edited. Those in `upgrade` are part
 * of `baseline.sql`, so they run only on databases that are older than the baseline.
 */
export const migrations = {
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
  "0058_spend_sum_order": spendSumOrder,
  "0059_decisions": decisions,
  "0060_replicas": replicas,
  "0061_applied_replicas": appliedReplicas,
  "0062_autoscaling": autoscaling,
  "0063_applied_scaling": appliedScaling,
  "0064_model_engines": modelEngines,
  "0065_ways_back": waysBack,
  "0066_model_references": modelReferences,
  "0067_sentinels": sentinels,
  "0068_suspicion_engines": suspicionEngines,
  "0069_operator_references": operatorReferences,
  "0071_request_engines": requestEngines,
  "0072_sent_alarms": sentAlarms
}
