import { Effect, Option, Predicate } from "effect"
import { makeStage } from "./stage.ts"

/** The specification of the object `tiny`. */
export const spec = { source: { repo: "seatrial/tiny-chat" }, serving: { hostClass: "local" } }

/** Long enough for passes that are already due. */
export const idle = Effect.forEach(Array.from({ length: 300 }), () => Effect.yieldNow)

/** A cluster into which `tiny` is applied, without API runs. */
export const makeDoor = () => {
  const stage = makeStage()
  stage.forget()
  const object = () => Option.getOrUndefined(stage.kube.find("ModelDeployment", "tiny"))
  const metadata = () => {
    const current = object()?.metadata
    return Predicate.isObject(current) ? current : {}
  }
  const status = () => {
    const current = object()?.status
    return Predicate.isObject(current) ? current : {}
  }
  const condition = (name: string) => {
    const { conditions } = status()
    const current = Array.isArray(conditions) ? conditions.find((one) => Predicate.isObject(one) && one.type === name) : undefined
    return Predicate.isObject(current) ? current : {}
  }
  const apply = (change: object = spec, generation = 1, more: object = {}) =>
    stage.kube.add("ModelDeployment", "tiny", { metadata: { namespace: "seatrial", generation, ...more }, spec: change })
  const served = (run: string) => stage.until(() => status().deploymentId === run && status().message === "Serves.")
  const first = "dep_01k3v7m8q2w4x6y8z0a2b4c001"
  const second = "dep_01k3v7m8q2w4x6y8z0a2b4c002"
  const engines = () => stage.kube.names("Pod").filter((name) => name.endsWith("-engine-0"))
  return { ...stage, object, metadata, status, condition, apply, served, first, second, engines }
}
