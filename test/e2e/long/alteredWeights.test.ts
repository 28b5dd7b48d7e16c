import { readFileSync } from "node:fs"
import { chmod, open, readFile } from "node:fs/promises"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { DeploymentId } from "@seatrial/domain"
import { Event, Pod } from "@seatrial/kube"
import { enginePodName } from "@seatrial/operator"
import { Effect, Option, Schema } from "effect"
import { quietlyAltered } from "../../mutants/fileMutants.ts"
import { ask, wholeOf } from "../chat.ts"
import { patiently } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { processesOf } from "../processesOf.ts"
import { Served } from "../Served.ts"
import { commitsIn } from "../startAgain.ts"

const namespace = "seatrial"

/** Changes bytes of a file in place. Its inode and length stay the same. */
const overwrite = async (path: string, bytes: Uint8Array) => {
  await chmod(path, 0o644)
  const file = await open(path, "r+")
  await file.write(bytes, 0, bytes.length, 0)
  await file.close()
}

const killEngine = (folder: string) => {
  const engines = processesOf(folder).filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("seatrial-reference-engine"))
  assert.strictEqual(engines.length, 1)
  for (const pid of engines) process.kill(pid, "SIGKILL")
}

it.live(
  "altered weights are detected when an engine crashes and restarts in its pod, and downloaded again for a new pod, even if greedy answers stay the same",
  () =>
    Effect.gen(function* () {
      const { caller, folder, kube, model, operation } = yield* Served
      const engine = patiently(kube.get(Pod, enginePodName(Schema.decodeUnknownSync(DeploymentId)(operation.id)), namespace))
      const first = Option.getOrThrow(yield* engine).metadata.uid
      const textBefore = wholeOf(yield* ask(caller, model)).text
      const [store = ""] = yield* Effect.promise(() => commitsIn(folder))
      const weights = join(store, "model.safetensors")
      const originalBytes = yield* Effect.promise(() => readFile(weights))

      yield* Effect.promise(() => overwrite(weights, quietlyAltered().get("model.safetensors") ?? new Uint8Array()))
      assert.isFalse(originalBytes.equals(yield* Effect.promise(() => readFile(weights))))
      killEngine(folder)

      const events = yield* eventually(
        "the reason of the pod's replacement is reported",
        Effect.map(patiently(kube.list(Event, { namespace })), (events) => events.filter(({ reason }) => reason === "FingerprintsDiffer")),
        (events) => events.length > 0
      )
      assert.match(
        events[0]?.note ?? "",
        /^The engine's answers differ from the verified ones: .*0 of \d+ greedy answers differ, and the scores of fixed texts are not as expected \(shifted by .*\)\. .*A new pod checks the weights\.$/
      )
      yield* eventually("another pod is there", engine, (pod) => Option.isSome(pod) && pod.value.metadata.uid !== first)
      const answer = yield* eventually("the model answers", ask(caller, model), ({ status }) => status === 200)
      assert.strictEqual(wholeOf(answer).text, textBefore)
      assert.isTrue(originalBytes.equals(yield* Effect.promise(() => readFile(weights))))

      // An engine with unaltered weights continues in its pod.
      const { uid } = Option.getOrThrow(yield* engine).metadata
      killEngine(folder)
      const isUp = (pod: Option.Option<Pod>) => {
        const status = Option.getOrUndefined(pod)?.status
        return status?.containerStatuses?.[0]?.restartCount === 1 && status.containerStatuses[0].ready
      }
      assert.strictEqual(Option.getOrThrow(yield* eventually("its container runs again", engine, isUp)).metadata.uid, uid)
      yield* eventually("the model answers again", ask(caller, model), ({ status }) => status === 200)
      assert.strictEqual(Option.getOrThrow(yield* engine).metadata.uid, uid)
    }).pipe(Effect.provide(Served.layer), Effect.scoped),
  600_000
)
