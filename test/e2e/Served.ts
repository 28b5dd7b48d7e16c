import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { DeploymentOperation } from "@seatrial/domain"
import type { KubeClient } from "@seatrial/kube"
import { referenceVersion } from "@seatrial/trial"
import { Context, Effect, Layer, Schema } from "effect"
import { seatrial } from "../../packages/cli/test/runCommand.ts"
import { tinyReference } from "../mutants/trySample.ts"
import { bodyOf, type Caller, makeCaller } from "./Caller.ts"
import { openCluster, shortenBenchmark } from "./cluster.ts"
import { type LocalSystem, makeStateFolder, startSystem } from "./LocalSystem.ts"

/** The sample model. */
export const source = { kind: "model_hub", repo: "seatrial/tiny-chat" } as const

/** A short context, because the checks fill it. With a shorter one there would be no fingerprints. */
export const serving = { host_class: "sim-small", max_context: 512 } as const

const Derived = Schema.Struct({
  kind: Schema.Literal("derived"),
  source: Schema.Struct({ commit: Schema.String }),
  serving: Schema.Struct({ host_class: Schema.String, max_context: Schema.Int }),
  fit: Schema.Struct({ verdict: Schema.String })
})
/** Imports the reference of the sample model at this commit. */
const importReference = Effect.fnUntraced(function* (folder: string, { state }: LocalSystem, commit: string) {
  const file = join(folder, "references.json")
  const references = [{ repo: source.repo, commit, texts_version: referenceVersion, reference: tinyReference }]
  writeFileSync(file, JSON.stringify({ format: 1, references }))
  const imported = yield* seatrial(["admin", "references", "import", file], { DATABASE_URL: state.database_url, SEATRIAL_ADMIN: "test" })
  assert.strictEqual(imported.code, 0, imported.err)
})

/** A running system with one served model. Every test must leave it serving. */
export class Served extends Context.Service<
  Served,
  {
    readonly folder: string
    readonly system: LocalSystem
    readonly caller: Caller
    readonly kube: KubeClient["Service"]
    readonly input: unknown
    readonly idempotencyKey: string
    readonly operation: DeploymentOperation
    /** The commit of the preview. */
    readonly commit: string
    /** The callable name of the model. */
    readonly model: string
  }
>()("seatrial/test/Served") {
  /** `environment`: settings of the system. By default its data does not survive a crash. */
  static readonly layerWith = (environment: Readonly<Record<string, string>>) =>
    Layer.effect(
      Served,
      Effect.gen(function* () {
        const folder = yield* makeStateFolder
        const system = yield* startSystem(folder, { SEATRIAL_DURABLE: "false", ...environment })
        const caller = makeCaller(system.state.address, system.state.api_key)
        const kube = yield* openCluster(system.state.kubeconfig)
        yield* shortenBenchmark(kube)
        const preview = bodyOf(Derived, yield* caller.call("POST", "/v1/deployment-previews", { source, serving }))
        yield* importReference(folder, system, preview.source.commit)
        const input = { source, serving: preview.serving }
        const idempotencyKey = crypto.randomUUID()
        const answer = yield* caller.call("POST", "/v1/deployments", input, { "idempotency-key": idempotencyKey })
        assert.strictEqual(answer.status, 201)
        const operation = bodyOf(DeploymentOperation, answer)
        const ended = yield* caller.finished(operation.id)
        assert.deepStrictEqual([ended.status, ended.failure_detail], ["activated", null])
        return Served.of({ folder, system, caller, kube, input, idempotencyKey, operation, commit: preview.source.commit, model: ended.model })
      })
    )

  static readonly layer = Served.layerWith({})
}
