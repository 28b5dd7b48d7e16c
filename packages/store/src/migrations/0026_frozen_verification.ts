import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Receipts contain the trial results of their revision from the time of its activation. These results never change
 * afterward, because the signature covers them. The database enforces this for every program and version.
 */
export const frozenVerification = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    CREATE FUNCTION keep_verification() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION 'What revision % was verified as is frozen', OLD.id;
    END $$`
  yield* sql`
    CREATE TRIGGER revisions_verification BEFORE UPDATE OF verification, base_hf_revision, adapter_content_hash ON revisions
    FOR EACH ROW WHEN (
      OLD.verification IS NOT NULL
      AND (OLD.verification, OLD.base_hf_revision, OLD.adapter_content_hash) IS DISTINCT FROM (NEW.verification, NEW.base_hf_revision, NEW.adapter_content_hash)
    ) EXECUTE FUNCTION keep_verification()`
})
