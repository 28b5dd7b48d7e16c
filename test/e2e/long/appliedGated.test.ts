import { assert, it } from "@effect/vitest"
import { ModelDeployment } from "@seatrial/operator"
import { Effect, Option } from "effect"
import { makeCaller } from "../Caller.ts"
import { runCommand } from "../ChildProgram.ts"
import { openCluster, shortenBenchmark } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { makeStateFolder, startSystem } from "../LocalSystem.ts"
import { serving } from "../Served.ts"

const token = "hf_seatrialSampleToken"
const namespace = "seatrial"
const source = { repo: "seatrial/tiny-chat-gated" }

it.live(
  "an applied ModelDeployment reads a gated repository with the organization's shared token, and another one updates the model by its ID",
  () =>
    Effect.gen(function* () {
      const folder = yield* makeStateFolder
      const { state } = yield* startSystem(folder, { SEATRIAL_DURABLE: "false" })
      const kube = yield* openCluster(state.kubeconfig)
      yield* shortenBenchmark(kube)
      const { deployment } = makeCaller(state.address, state.api_key)
      const admin = (...args: ReadonlyArray<string>) =>
        runCommand(["admin", "hub-connections", ...args, "--org", "local"], { SEATRIAL_STATE: folder, HF_TOKEN: token })
      const apply = (name: string, spec: object) => {
        const object = { apiVersion: "seatrial.dev/v1alpha1", kind: "ModelDeployment", metadata: { name, namespace }, spec }
        return kube.apply(ModelDeployment, object)
      }
      const statusOf = (name: string) => Effect.map(kube.get(ModelDeployment, name, namespace), (found) => Option.getOrUndefined(found)?.status)
      const accepted = (status: typeof ModelDeployment.schema.Type.status) => status?.conditions?.find(({ type }) => type === "Accepted")

      yield* apply("gated", { source, serving: { hostClass: serving.host_class } })
      const refused = yield* eventually("a run without a token", statusOf("gated"), (status) => status?.phase === "failed")
      assert.strictEqual(refused?.failure?.code, "no_hub_connection")

      // ModelDeployments do not use the tokens of users.
      yield* admin("set", "--email", "you@localhost")
      yield* admin("share", "--email", "you@localhost")
      yield* apply("gated", { source, serving: { hostClass: serving.host_class, maxContext: 512 } })
      const served = yield* eventually("a run with one", statusOf("gated"), (status) => status?.phase === "activated" && status.message === "Serves.")
      const { model, model_id } = yield* deployment(served?.deploymentId ?? "")
      assert.strictEqual(model, "local/gated")

      yield* apply("second", { source, modelId: model_id })
      const taken = yield* eventually("another object of the model", statusOf("second"), (status) => accepted(status) !== undefined)
      assert.deepInclude(accepted(taken), { status: "False", reason: "ModelTaken" })
      yield* apply("stranger", { source, modelId: "mdl_01k3v7m8q2w4x6y8z0a2b4c6d8" })
      const unknown = yield* eventually("an object of no model", statusOf("stranger"), (status) => accepted(status) !== undefined)
      assert.deepInclude(accepted(unknown), { status: "False", reason: "ModelUnknown" })
      assert.notInclude(JSON.stringify(yield* kube.list(ModelDeployment, { namespace })), token)
    }).pipe(Effect.scoped),
  600_000
)
