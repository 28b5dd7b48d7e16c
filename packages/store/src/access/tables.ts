/** The roles of the programs and of administration. None of them owns a table. */
export const roles = ["server", "gateway", "operator", "admin"] as const
export type Role = (typeof roles)[number]

/** Privileges as in GRANT, limited to columns if a role needs only these. */
type Grants = Partial<Record<Exclude<Role, "admin">, ReadonlyArray<string>>>

interface TableAccess {
  /** The column with the organization of a row; null: the table belongs to no organization. */
  readonly tenant: "org_id" | "id" | null
  /**
   * SQL condition for rows that the server also reads with `acrossOrganizations`: keys before their organization is
   * known, and published models.
   */
  readonly across?: string
  readonly grants: Grants
  /** Whether only migrations write it. */
  readonly migrated?: boolean
}

const read = ["SELECT"]
const amounts = ["SELECT (org_id, amount_micros)"]
const write = ["SELECT", "INSERT", "UPDATE"]
/**
 * The key of a receipt, and the columns that `ON CONFLICT` reads if a late end replaces the receipt of a lost gateway.
 */
const replacedReceipt = [
  "org_id",
  "created_at",
  "request_id",
  "hf_revision",
  "engine_version",
  "status_code",
  "finish_reason",
  "input_tokens",
  "output_tokens",
  "cache_read_tokens",
  "cache_write_tokens",
  "input_micros_per_mtok",
  "output_micros_per_mtok",
  "cache_read_micros_per_mtok",
  "cache_write_micros_per_mtok",
  "cost_micros",
  "ttft_ms",
  "latency_ms",
  "note",
  "digests"
]
const all = ["SELECT", "INSERT", "UPDATE", "DELETE"]

/** The serving revisions of published models. */
const published = "EXISTS (SELECT FROM models m WHERE m.id = revisions.model_id AND m.active_revision_id = revisions.id AND m.visibility = 'public')"

/**
 * The privileges of each program for each table. `admin` may read and write all of them. Row-level security restricts
 * the server to the rows of one organization at a time; the other programs work for all organizations. Every new table
 * needs an entry: a test fails without it.
 */
export const tables: Readonly<Record<string, TableAccess>> = {
  api_keys: {
    tenant: "org_id",
    across: "true",
    grants: {
      server: ["SELECT", "UPDATE (last_used_at)"],
      gateway: ["SELECT", "UPDATE (last_used_at)"],
      operator: ["SELECT (org_id, id, day_limit_micros, month_limit_micros)"]
    }
  },
  applied_access: { tenant: null, migrated: true, grants: {} },
  applied_resources: { tenant: "org_id", grants: { server: read, operator: all } },
  audit_events: { tenant: "org_id", grants: { server: ["SELECT", "INSERT"], operator: ["INSERT"] } },
  credits: { tenant: "org_id", grants: { server: amounts, gateway: amounts, operator: amounts } },
  // Only for administrators: an observation names nodes and the use of other organizations.
  decisions: { tenant: "org_id", grants: { operator: ["SELECT", "INSERT", "DELETE"] } },
  deployment_phases: { tenant: "org_id", grants: { server: ["SELECT", "INSERT"], operator: ["SELECT", "INSERT"] } },
  deployment_progress: { tenant: "org_id", grants: { server: read, operator: all } },
  deployments: { tenant: "org_id", grants: { server: write, gateway: read, operator: write } },
  dropped_receipts: { tenant: "org_id", grants: {} },
  endpoint_loads: { tenant: "org_id", grants: { server: read, gateway: all, operator: read } },
  endpoints: {
    tenant: "org_id",
    grants: { server: ["SELECT (org_id, revision_id, pod, reachable_at)"], gateway: ["SELECT", "UPDATE (reachable_at)"], operator: all }
  },
  engine_starts: { tenant: "org_id", grants: { gateway: read, operator: ["SELECT", "INSERT"] } },
  gpu_holds: { tenant: "org_id", grants: { server: read, gateway: read, operator: write } },
  gpu_looks: { tenant: null, grants: { server: read, gateway: read, operator: write } },
  host_classes: { tenant: null, grants: { server: read, gateway: read, operator: all } },
  hub_connections: { tenant: "org_id", grants: { server: read, operator: read } },
  idempotency_keys: { tenant: "org_id", grants: { server: ["SELECT", "INSERT"], operator: write } },
  invitations: { tenant: "org_id", grants: {} },
  memberships: { tenant: "org_id", grants: {} },
  migrations: { tenant: null, migrated: true, grants: { server: read, gateway: read, operator: read } },
  missing_references: { tenant: null, grants: { operator: write } },
  // A trial reads a reference by the commit that it has verified. A reference never changes.
  model_references: { tenant: null, grants: { operator: ["SELECT", "INSERT"] } },
  models: { tenant: "org_id", across: "visibility = 'public'", grants: { server: write, gateway: read, operator: write } },
  node_faults: { tenant: "org_id", grants: { gateway: read, operator: all } },
  operator_terms: { tenant: null, grants: { operator: write } },
  organizations: { tenant: "id", across: "true", grants: { server: read, gateway: read, operator: read } },
  outbox: { tenant: "org_id", grants: { server: ["SELECT", "INSERT"], gateway: ["INSERT"], operator: all } },
  purchases: { tenant: "org_id", grants: { server: amounts, gateway: amounts, operator: amounts } },
  receipts: { tenant: "org_id", grants: { server: read, gateway: [`SELECT (${replacedReceipt.join(", ")})`, "INSERT", "UPDATE"] } },
  request_sweeps: { tenant: null, grants: { gateway: write, operator: read } },
  requests: { tenant: "org_id", grants: { server: read, gateway: write, operator: read } },
  reservations: { tenant: "org_id", grants: { operator: read } },
  retired_months: { tenant: null, migrated: true, grants: {} },
  revision_uses: { tenant: "org_id", grants: { gateway: write, operator: write } },
  revisions: { tenant: "org_id", across: published, grants: { server: ["SELECT", "UPDATE"], gateway: read, operator: write } },
  schema_requirements: { tenant: null, migrated: true, grants: { server: read, gateway: read, operator: read } },
  sentinels: { tenant: "org_id", grants: { operator: all } },
  spend_alerts: { tenant: "org_id", grants: { gateway: ["SELECT", "INSERT"], operator: ["SELECT", "INSERT"] } },
  // Written by a trigger that runs with the privileges of its owner.
  spend_sums: { tenant: "org_id", grants: { server: read, gateway: read, operator: read } },
  stored_weights: { tenant: null, grants: { operator: all } },
  suspicions: { tenant: "org_id", grants: { server: read, operator: write } },
  usage_days: { tenant: "org_id", grants: {} },
  users: { tenant: null, grants: {} }
}

/**
 * Views that read with the privileges of their owner. `organization_requests` is the request list: row-level security
 * on the table would prevent the use of indexes whose expressions are not leakproof, so the view restricts the rows
 * itself. `verified_revisions` is the part of a revision that receipts show; the revision may belong to another
 * organization.
 */
export const views: Readonly<Record<string, { readonly table: string; readonly definition: string; readonly grants: Grants }>> = {
  organization_requests: {
    table: "requests",
    // Not a plain equality: the planner would use it to select rows, instead of the index range of the list.
    definition: "SELECT * FROM requests WHERE coalesce(org_id = current_setting('seatrial.org_id', true), false)",
    grants: { server: read }
  },
  verified_revisions: {
    table: "revisions",
    definition: "SELECT id, verification, base_hf_revision, adapter_content_hash FROM revisions",
    grants: { server: read }
  }
}

/** Functions that run with the privileges of their owner, and the roles that may call them. */
export const functions: Readonly<Record<string, ReadonlyArray<Role>>> = {
  "count_spend()": [],
  "ensure_request_partitions(timestamptz, timestamptz)": roles,
  "retire_old_month(text, integer)": ["server"],
  "drop_retired_months()": ["server"]
}
