import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Lease } from "@seatrial/kube"
import { Effect, Schema } from "effect"
import { startProgram } from "../e2e/ChildProgram.ts"
import { patiently } from "../e2e/cluster.ts"
import { eventually } from "../e2e/eventually.ts"
import { inOrder } from "../e2e/inOrder.ts"
import { keepAsking } from "../e2e/keepAsking.ts"
import { openDatabaseLine } from "./DatabaseLine.ts"
import { drawsOf } from "./Draw.ts"
import { settled } from "./expectedEnd.ts"
import { type Lane, namespace, openLaneWith } from "./Lane.ts"
import { serveFirst } from "./serveFirst.ts"

const changes = Number(process.env.SEATRIAL_FAULT_LEASES ?? 2)
const first = Number(process.env.SEATRIAL_FAULT_SEED ?? 1)
/** Long enough that a busy machine does not lose the lease. */
const leaseSeconds = 12

const watched = ["deployments", "deployment_phases", "revisions", "models", "endpoints", "gpu_holds", "gpu_looks", "host_classes", "outbox"]

/** Lets Postgres record who changes which rows. */
const recordWrites = Effect.fnUntraced(function* (lane: Lane) {
  const run = (statement: string) => lane.select(Schema.Unknown, statement)
  yield* run("CREATE TABLE fault_writes (who text NOT NULL, what text NOT NULL, at timestamptz NOT NULL)")
  yield* run(`CREATE FUNCTION fault_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    INSERT INTO fault_writes VALUES (current_setting('application_name'), TG_OP || ' ' || TG_TABLE_NAME, clock_timestamp()); RETURN NULL; END $$`)
  for (const table of watched) yield* run(`CREATE TRIGGER fault_write AFTER INSERT OR UPDATE OR DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION fault_write()`)
})

/** An operator in its own process, whose requests to the API server are recorded and can be cut. */
const startOperator = Effect.fnUntraced(function* (lane: Lane, name: string) {
  const heard: Array<{ readonly at: number; readonly what: string }> = []
  let identity = ""
  const line = yield* openDatabaseLine(lane.cluster.address, (text) => {
    identity = /"holderIdentity":"([^"]+)"/.exec(text)?.[1] ?? identity
    const what = /^(POST|PUT|PATCH|DELETE) \S+/.exec(text)?.[0]
    if (what !== undefined && !what.includes("/leases")) heard.push({ at: Date.now(), what })
  })
  const kubeconfig = join(lane.folder, `${name}.kubeconfig`)
  const address = line.url.replace(/\/$/, "")
  const direct = lane.cluster.kubeconfig.replace(`/token/${lane.cluster.token}`, "").replaceAll(lane.cluster.address, address)
  yield* Effect.promise(() => writeFile(kubeconfig, direct, { mode: 0o600 }))
  const program = yield* startProgram(["test/faults/operatorProcess.ts"], {
    KUBECONFIG: kubeconfig,
    DATABASE_URL: lane.product,
    DATABASE_ROLE: "seatrial_operator",
    DATABASE_APPLICATION_NAME: name,
    SEATRIAL_ENCRYPTION_KEY: lane.state.encryption_key,
    HF_ENDPOINT: lane.state.hub,
    OPERATOR_NAMESPACE: namespace,
    OPERATOR_LEASE_SECONDS: String(leaseSeconds)
  })
  return {
    name,
    line,
    heard,
    program,
    /** The identity with which it has written the lease. */
    identity: () => identity
  }
})

const Term = Schema.Tuple([Schema.Struct({ term: Schema.Int, at: Schema.Finite })])
const termOf = (lane: Lane) =>
  Effect.map(lane.select(Term, "SELECT term, extract(epoch FROM begun_at)::float8 * 1000 AS at FROM operator_terms"), ([term]) => term)
const Writes = Schema.Array(Schema.Struct({ what: Schema.String, at: Schema.Finite }))
const holderOf = ({ kube }: Lane) =>
  Effect.map(patiently(kube.get(Lease, "seatrial-operator", namespace)), (lease) => (lease._tag === "Some" ? (lease.value.spec?.holderIdentity ?? "") : ""))

it.live(
  `two operators and ${changes} changes of the leader from seed ${first}: an operator that was stopped or cut off writes nothing when it returns, and every phase is recorded once`,
  () =>
    Effect.gen(function* () {
      const lane = yield* openLaneWith({ operates: false })
      yield* recordWrites(lane)
      const one = yield* startOperator(lane, "operator-a")
      yield* lane.ready
      const other = yield* startOperator(lane, "operator-b")
      const serving = yield* serveFirst(lane)
      const stop = yield* keepAsking(lane.caller, serving.model)
      for (let seed = first; seed < first + changes; seed++) {
        const draw = drawsOf(seed)
        const stops = seed % 2 === 1
        const before = yield* termOf(lane)
        const holder = yield* eventually("one of both leads", holderOf(lane), (now) => now !== "" && (now === one.identity() || now === other.identity()))
        const [leader, standby] = holder === one.identity() ? [one, other] : [other, one]
        const { id } = yield* lane.caller.deploy({ model_id: serving.modelId, serving: { host_class: "sim-small", max_context: 256 + (seed % 256) } })
        yield* Effect.sleep(draw.between(0, 1_500))
        if (stops) yield* leader.program.signal("SIGSTOP")
        else leader.line.cut()
        yield* eventually("another operator leads", holderOf(lane), (now) => now !== "" && now !== holder)
        const { at } = yield* eventually("and begins its term", termOf(lane), ({ term }) => term > before.term)
        yield* Effect.sleep(draw.between(0, 1_500))
        const back = Date.now()
        if (stops) yield* leader.program.signal("SIGCONT")
        else leader.line.mend()
        const ended = yield* lane.caller.finished(id)
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null], `seed ${seed}`)
        inOrder(ended)
        serving.run = id
        yield* settled(lane, id)
        const late = yield* lane.select(
          Writes,
          `SELECT what, extract(epoch FROM at)::float8 * 1000 AS at FROM fault_writes WHERE who LIKE '${leader.name}%' AND at > to_timestamp(${at} / 1000.0 + 0.001)`
        )
        const story = `seed ${seed}: ${leader.name} was ${stops ? "stopped" : "cut off"}, ${standby.name} began its term at ${at}`
        assert.deepStrictEqual(late, [], story)
        assert.deepStrictEqual(
          leader.heard.filter((write) => write.at >= (stops ? back : at)),
          [],
          story
        )
        yield* Effect.logInfo(story)
        assert.deepStrictEqual([one.program.hasExited(), other.program.hasExited()], [false, false], `${one.program.output()}\n${other.program.output()}`)
      }
      const answers = yield* stop
      assert.isAbove(answers.length, 0)
      const twice = yield* lane.select(Schema.Array(Schema.Unknown), "SELECT deployment_id, phase FROM deployment_phases GROUP BY 1, 2 HAVING count(*) > 1")
      assert.deepStrictEqual(twice, [])
    }).pipe(Effect.scoped),
  1_200_000
)
