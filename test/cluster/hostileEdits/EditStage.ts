import { ModelDeployment } from "@seatrial/operator"
import { Effect, Option } from "effect"
import type { Caller } from "../../e2e/Caller.ts"
import { ask } from "../../e2e/chat.ts"
import { eventually } from "../../e2e/eventually.ts"
import { type RealCluster, startRealCluster } from "../RealCluster.ts"
import { simulatedHostClass } from "../simulatedHostClass.ts"
import { startProduct } from "../startProduct.ts"

/** A model that serves on a real control plane, and ways to edit its objects. */
export interface EditStage {
  readonly cluster: RealCluster
  readonly caller: Caller
  /** The name that callers use. */
  readonly model: string
  /** What a command of kubectl in the operator's namespace prints; what it refuses with if it fails. */
  readonly kubectl: (...args: ReadonlyArray<string>) => Effect.Effect<string>
  /** Applies a manifest. */
  readonly apply: (...objects: ReadonlyArray<object>) => Effect.Effect<string>
  /** A merge patch; `null` removes a field. */
  readonly patch: (object: string, change: object, ...options: ReadonlyArray<string>) => Effect.Effect<string>
  /** The object that serves, as the API server has it; none if it is gone or cannot be read. */
  readonly served: Effect.Effect<Option.Option<ModelDeployment>>
  /** `pod/NAME` of the engine that serves. */
  readonly pod: Effect.Effect<string>
  /** `poddisruptionbudget/NAME` of the engine that serves. */
  readonly budget: Effect.Effect<string>
  /** What the status of that object says about its run, without times and texts. Empty if it cannot be read. */
  readonly shown: Effect.Effect<string>
  /** The same before any edit. */
  readonly shownAtFirst: string
  readonly operatorOutput: () => string
  /** The exit code of the operator, or its signal; null while it runs. */
  readonly operatorExit: () => number | string | null
}

export const namespace = "seatrial"
/** The object of the model that serves throughout. */
export const object = "steady"

export const modelDeployment = (name: string, spec: object, more: object = {}) => ({
  apiVersion: "seatrial.dev/v1alpha1",
  kind: "ModelDeployment",
  metadata: { name, namespace },
  spec,
  ...more
})
/** Its engines end soon, so that another pod starts soon. */
export const hostClass = simulatedHostClass("sim-small", { bootDeadlineSeconds: 180, drainSeconds: 3 })
export const spec = { source: { repo: "seatrial/tiny-chat" }, serving: { hostClass: "sim-small", maxContext: 512 } }

/** What a status says as long as the same run serves: everything but times, results of the trial, and texts, which are short. */
const lastingOf = ({ metadata: { generation }, status = {} }: ModelDeployment): string => {
  const { conditions = [], deploymentId, endpoint, gpus, hostClass, message = "", model, observedGeneration, phase, pod } = status
  const verdicts = conditions.map(({ reason, status: value, type }) => `${type}=${value}/${reason}`)
  return [phase, endpoint, model, deploymentId, hostClass, gpus, pod, observedGeneration === generation, message.length < 10_000, ...verdicts].join(" ")
}

export const openEditStage = Effect.gen(function* () {
  const cluster = yield* startRealCluster
  const { caller, startOperator } = yield* startProduct(cluster)
  const operator = yield* startOperator({ OPERATOR_ORGANIZATION: "local", OPERATOR_LEASE_SECONDS: "3" })
  const exits: Array<number | string> = []
  yield* Effect.forkScoped(Effect.map(operator.exited, (code) => exits.push(code ?? "a signal")))
  const run = (args: ReadonlyArray<string>, input?: string) =>
    cluster
      .command("kubectl", [...args, `--namespace=${namespace}`], input === undefined ? {} : { input })
      .pipe(Effect.catch(({ message }) => Effect.succeed(message)))
  const kubectl = (...args: ReadonlyArray<string>) => run(args)
  const apply = (...items: ReadonlyArray<object>) => run(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }))
  yield* apply(hostClass, modelDeployment(object, spec))
  const served = Effect.orElseSucceed(cluster.kube.get(ModelDeployment, object, namespace), () => Option.none())
  const isReady = (current: Option.Option<ModelDeployment>) =>
    Option.exists(current, ({ status }) => status?.conditions?.some(({ status, type }) => type === "Ready" && status === "True") === true)
  yield* eventually("the model serves", served, isReady)
  const model = `local/${object}`
  yield* eventually("it answers", ask(caller, model), ({ status }) => status === 200)
  const shown = Effect.map(served, (current) => (Option.isSome(current) ? lastingOf(current.value) : ""))
  const serving = kubectl("get", "mdep", object, "-o", "jsonpath={.status.pod}")
  const stage: EditStage = {
    shown,
    shownAtFirst: yield* shown,
    cluster,
    caller,
    model,
    kubectl,
    apply,
    patch: (edited, change, ...options) => kubectl("patch", edited, "--type=merge", `--patch=${JSON.stringify(change)}`, ...options),
    served,
    pod: Effect.map(serving, (pod) => `pod/${pod}`),
    budget: Effect.map(serving, (pod) => `poddisruptionbudget/${pod.replace(/-engine-0$/u, "")}`),
    operatorOutput: operator.output,
    operatorExit: () => exits[0] ?? null
  }
  yield* eventually(
    "its disruption budget exists",
    Effect.flatMap(stage.budget, (budget) => kubectl("get", budget, "-o", "name")),
    (name) => name.startsWith("poddisruptionbudget")
  )
  return stage
})
