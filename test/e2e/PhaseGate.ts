import { PgClient } from "@effect/sql-pg"
import { type DeploymentId, type WorkingPhase, workingPhases } from "@seatrial/domain"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import { eventually } from "./eventually.ts"

/** Blocks the statement with which an operator takes a run out of a phase. */
export interface PhaseGate {
  /** Blocks every phase of every run except one. */
  readonly shut: (except: DeploymentId) => Effect.Effect<void>
  /** Waits until an operator is blocked at a phase. Returns its application name in Postgres. */
  readonly arrival: (phase: WorkingPhase) => Effect.Effect<string>
  /** Waits until no operator is blocked at the phase, and then unblocks it. */
  readonly open: (phase: WorkingPhase) => Effect.Effect<void>
}

const classId = 7_071
const keyOf = (phase: WorkingPhase) => workingPhases.indexOf(phase)

/** Creates gates from a trigger and advisory locks in the database of a running system. Only new connections detect immediately that their program was killed. */
export const makePhaseGate = Effect.fnUntraced(function* (databaseUrl: string): Effect.fn.Return<PhaseGate, never, Scope.Scope> {
  const sql = Context.get(yield* Effect.orDie(Layer.build(PgClient.layer({ url: Redacted.make(databaseUrl), maxConnections: 3 }))), PgClient.PgClient)
  const database = new URL(databaseUrl).pathname.slice(1)
  // By default a backend that waits for a lock does not check its connection, so it would complete the statement of a killed operator.
  yield* Effect.orDie(sql`ALTER DATABASE ${sql(database)} SET client_connection_check_interval = '50ms'`)
  const phases = sql.literal(workingPhases.map((phase) => `'${phase}'`).join(", "))
  yield* Effect.orDie(sql`
    CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM pg_advisory_xact_lock_shared(${sql.literal(String(classId))}, array_position(ARRAY[${phases}], OLD.phase) - 1);
        RETURN NEW;
      END $$`)
  const session = yield* Effect.orDie(sql.reserve)
  const atGate = (phase: WorkingPhase) =>
    Effect.orDie(sql<{ readonly name: string }>`
      SELECT a.application_name AS name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE l.locktype = 'advisory' AND NOT l.granted AND l.classid = ${classId} AND l.objid = ${keyOf(phase)}`)
  return {
    shut: Effect.fnUntraced(function* (except) {
      for (const phase of workingPhases) yield* session.executeRaw("SELECT pg_advisory_lock($1, $2)", [classId, keyOf(phase)])
      yield* sql`
        CREATE TRIGGER gate BEFORE UPDATE ON deployments FOR EACH ROW
        WHEN (OLD.phase <> NEW.phase AND OLD.id <> ${sql.literal(`'${except}'`)}) EXECUTE FUNCTION wait_at_gate()`
    }, Effect.orDie),
    arrival: (phase) =>
      Effect.map(
        eventually(`an operator is blocked at the gate of ${phase}`, atGate(phase), (names) => names.length > 0),
        (names) => names.map(({ name }) => name).join()
      ),
    open: Effect.fnUntraced(function* (phase) {
      yield* eventually(`no operator is blocked at the gate of ${phase}`, atGate(phase), (names) => names.length === 0)
      yield* session.executeRaw("SELECT pg_advisory_unlock($1, $2)", [classId, keyOf(phase)])
    }, Effect.orDie)
  }
})
