import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Invitations, credits and limits; a second secret for a rotated key; keys that outlive the membership of their user.
 */
export const administration = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // The keys of a removed member stay, revoked: requests, receipts and audit events refer to them.
  yield* sql`
    ALTER TABLE api_keys
      DROP CONSTRAINT api_keys_org_id_user_id_fkey,
      ADD FOREIGN KEY (org_id) REFERENCES organizations,
      ADD FOREIGN KEY (user_id) REFERENCES users,
      ADD COLUMN previous_sha256 bytea CONSTRAINT api_keys_previous_secret UNIQUE CHECK (length(previous_sha256) = 32),
      ADD COLUMN previous_expires_at timestamptz(3),
      ADD CHECK ((previous_sha256 IS NULL) = (previous_expires_at IS NULL))`
  yield* sql`
    ALTER TABLE organizations
      ADD COLUMN gpu_limit integer CHECK (gpu_limit >= 0),
      ADD COLUMN billing_suspended_at timestamptz(3)`
  yield* sql`ALTER TABLE purchases ADD COLUMN reference text`
  yield* sql`CREATE UNIQUE INDEX purchases_reference ON purchases (org_id, reference) WHERE reference IS NOT NULL`
  yield* sql`
    CREATE TABLE credits (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      id bigint GENERATED ALWAYS AS IDENTITY,
      amount_micros bigint NOT NULL CHECK (amount_micros > 0),
      note text,
      created_at timestamptz(3) NOT NULL,
      PRIMARY KEY (org_id, id)
    )`
  yield* sql`
    CREATE TABLE invitations (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      id text COLLATE "C" NOT NULL,
      email text COLLATE "C" NOT NULL CHECK (email = lower(email)),
      role text NOT NULL CHECK (role IN ('owner', 'member')),
      token_sha256 bytea NOT NULL CONSTRAINT invitations_token UNIQUE CHECK (length(token_sha256) = 32),
      created_at timestamptz(3) NOT NULL,
      expires_at timestamptz(3) NOT NULL,
      withdrawn_at timestamptz(3),
      accepted_at timestamptz(3),
      accepted_user_id text COLLATE "C" REFERENCES users,
      PRIMARY KEY (org_id, id),
      CHECK (withdrawn_at IS NULL OR accepted_at IS NULL),
      CHECK ((accepted_at IS NULL) = (accepted_user_id IS NULL))
    )`
})
