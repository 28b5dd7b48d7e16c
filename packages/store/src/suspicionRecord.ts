import type { Suspicion } from "@seatrial/domain"

/** A row as the driver returns it. It is not decoded: a test checks the responses against the schema of the record. */
export interface SuspicionRow {
  readonly id: string
  readonly created_at: Date
  readonly model_id: string
  readonly deployment_id: string
  readonly revision_id: string
  readonly pod: string
  readonly since: Date
  readonly withdrawn_at: Date | null
  readonly probes: number
  readonly evidence: number
  readonly engines: number
  readonly requests: number
}

/** The record of a suspicion without the number of its requests. */
export const recordOf = (row: Omit<SuspicionRow, "requests">): Omit<Suspicion, "requests"> => ({
  id: row.id,
  object: "suspicion",
  model_id: row.model_id,
  deployment_id: row.deployment_id,
  revision_id: row.revision_id,
  engine: row.pod,
  since: row.since.toISOString(),
  withdrawn_at: row.withdrawn_at?.toISOString() ?? null,
  probes: row.probes,
  evidence: Math.round(Math.log10(row.evidence) * 10) / 10,
  engines: row.engines,
  requests_url: `/v1/org/suspicions/${row.id}/requests`,
  created_at: row.created_at.toISOString()
})
