import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The model and run of each applied `ModelDeployment` object, and the runs that were created for objects. */
export const appliedResources = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE applied_resources (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      namespace text COLLATE "C" NOT NULL,
      name text COLLATE "C" NOT NULL,
      uid text COLLATE "C" NOT NULL,
      generation bigint NOT NULL,
      spec_hash text COLLATE "C" NOT NULL,
      model_id text COLLATE "C" NOT NULL REFERENCES models,
      deployment_id text COLLATE "C" NOT NULL REFERENCES deployments,
      created_at timestamptz(3) NOT NULL,
      updated_at timestamptz(3) NOT NULL,
      PRIMARY KEY (namespace, name)
    )`
  yield* sql`CREATE UNIQUE INDEX applied_resources_deployment ON applied_resources (deployment_id)`
  yield* sql`ALTER TABLE deployments ADD COLUMN applied_namespace text COLLATE "C", ADD COLUMN applied_name text COLLATE "C"`
})
