import { open, readFile, rename } from "node:fs/promises"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { DeploymentId } from "@seatrial/domain"
import type { KubeClient } from "@seatrial/kube"
import { enginePodName, HostClassResource, ModelDeployment } from "@seatrial/operator"
import { Effect, Option, Schema } from "effect"
import { ask, wholeOf } from "../chat.ts"
import { eventually } from "../eventually.ts"
import { openSystem } from "../openSystem.ts"
import { serving, source } from "../Served.ts"
import { commitsIn, startAgain } from "../startAgain.ts"

const namespace = "seatrial"
const weights = "model.safetensors"
const decodeId = Schema.decodeUnknownSync(DeploymentId)

/** Restarts an engine and returns the log of its weights copy. */
const copiedAgain = Effect.fnUntraced(function* (kube: KubeClient["Service"], name: string) {
  yield* startAgain(kube, name)
  return yield* kube.podLog(name, namespace, { container: "copy-weights" })
})

it.live(
  "an engine reads the verified copy on its node: it is made once, repaired if damaged, used if the store is gone, and a node without room is reported",
  () =>
    Effect.gen(function* () {
      const { folder, caller, kube } = yield* openSystem("sim-small")
      const keepCopies = (weightsCache: object) => kube.mergePatch(HostClassResource, "sim-small", undefined, { spec: { weightsCache } })
      yield* keepCopies({ claimName: "node-weights" })
      yield* eventually(
        "the operator has reported its host classes",
        caller.call("POST", "/v1/deployment-previews", { source, serving }),
        ({ status }) => status === 200
      )

      const operation = yield* caller.deploy({ source, serving })
      const ended = yield* caller.finished(operation.id)
      assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
      const name = enginePodName(decodeId(operation.id))
      assert.match(
        yield* kube.podLog(name, namespace, { container: "copy-weights" }),
        /copied \d+ bytes of seatrial\/tiny-chat at [0-9a-f]{40}: \d+ files verified/
      )
      const commits = yield* Effect.promise(() => commitsIn(join(folder)))
      const copy = commits.find((path) => path.includes("node-weights")) ?? ""
      const store = commits.find((path) => !path.includes("node-weights")) ?? ""
      assert.lengthOf(commits, 2)
      const content = yield* Effect.promise(() => readFile(join(store, weights)))
      assert.isTrue(content.equals(yield* Effect.promise(() => readFile(join(copy, weights)))))
      assert.isNotEmpty(wholeOf(yield* ask(caller, ended.model)).text)

      yield* Effect.promise(async () => {
        const file = await open(join(copy, weights), "r+")
        await file.write(Buffer.alloc(64, 1), 0, 64, content.length - 64)
        await file.close()
      })
      assert.match(yield* copiedAgain(kube, name), new RegExp(`copied ${content.length} bytes of seatrial/tiny-chat`))
      assert.isTrue(content.equals(yield* Effect.promise(() => readFile(join(copy, weights)))))

      yield* Effect.promise(() => rename(store, `${store}-away`))
      assert.match(yield* copiedAgain(kube, name), /found \d+ verified files of seatrial\/tiny-chat/)
      const answered = yield* eventually("an answer", ask(caller, ended.model), ({ status }) => status === 200)
      assert.isNotEmpty(wholeOf(answered).text)

      yield* keepCopies({ claimName: null, sizeBytes: 1_000 })
      const tight = yield* caller.deploy({ model_id: operation.model_id, ref: "v1", serving })
      const failed = yield* caller.finished(tight.id)
      assert.strictEqual(failed.status, "failed")
      assert.match(
        failed.failure_detail ?? "",
        /^does_not_fit: The files of seatrial\/tiny-chat are .*, but a node of sim-small has room for only 1000 B \(1000 bytes\)\./
      )
      const reported = yield* eventually(
        "the status reports it",
        kube.get(ModelDeployment, tight.id.replace("_", "-"), namespace),
        (found) => Option.isSome(found) && found.value.status?.phase === "failed"
      )
      assert.match(Option.getOrThrow(reported).status?.message ?? "", /does_not_fit/)
    }).pipe(Effect.scoped),
  600_000
)
