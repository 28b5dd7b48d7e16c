import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Organizations, memberships, purchases, API keys and hub tokens. */
export const organizations = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`
    CREATE TABLE organizations (
      id text COLLATE "C" PRIMARY KEY,
      slug text COLLATE "C" NOT NULL CONSTRAINT organizations_slug UNIQUE,
      name text NOT NULL,
      status text NOT NULL CHECK (status IN ('active', 'suspended')),
      first_purchase_at timestamptz(3),
      created_at timestamptz(3) NOT NULL,
      updated_at timestamptz(3) NOT NULL
    )`
  yield* sql`
    CREATE TABLE users (
      id text COLLATE "C" PRIMARY KEY,
      email text COLLATE "C" NOT NULL CONSTRAINT users_email UNIQUE CHECK (email = lower(email)),
      name text NOT NULL,
      created_at timestamptz(3) NOT NULL
    )`
  yield* sql`
    CREATE TABLE memberships (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      user_id text COLLATE "C" NOT NULL REFERENCES users,
      role text NOT NULL CHECK (role IN ('owner', 'member')),
      created_at timestamptz(3) NOT NULL,
      PRIMARY KEY (org_id, user_id)
    )`
  yield* sql`
    CREATE TABLE purchases (
      org_id text COLLATE "C" NOT NULL REFERENCES organizations,
      id bigint GENERATED ALWAYS AS IDENTITY,
      amount_micros bigint NOT NULL CHECK (amount_micros > 0),
      created_at timestamptz(3) NOT NULL,
      PRIMARY KEY (org_id, id)
    )`
  yield* sql`
    CREATE TABLE api_keys (
      id text COLLATE "C" PRIMARY KEY,
      org_id text COLLATE "C" NOT NULL,
      user_id text COLLATE "C" NOT NULL,
      name text NOT NULL,
      secret_sha256 bytea NOT NULL CONSTRAINT api_keys_secret UNIQUE CHECK (length(secret_sha256) = 32),
      prefix text NOT NULL,
      last_four text NOT NULL,
      scopes text[] NOT NULL,
      created_at timestamptz(3) NOT NULL,
      expires_at timestamptz(3),
      revoked_at timestamptz(3),
      last_used_at timestamptz(3),
      FOREIGN KEY (org_id, user_id) REFERENCES memberships
    )`
  yield* sql`CREATE INDEX api_keys_org ON api_keys (org_id, created_at, id)`
  yield* sql`
    CREATE TABLE hub_connections (
      org_id text COLLATE "C" NOT NULL,
      user_id text COLLATE "C" NOT NULL,
      sealed_token bytea NOT NULL,
      created_at timestamptz(3) NOT NULL,
      updated_at timestamptz(3) NOT NULL,
      PRIMARY KEY (org_id, user_id),
      FOREIGN KEY (org_id, user_id) REFERENCES memberships ON DELETE CASCADE
    )`
})
