import { engineFor } from "@seatrial/engines"
import { Option, Result } from "effect"
import { type PodClass, toPodClass } from "./PodClass.ts"
import { brokenRule } from "./Rule.ts"
import { hostClassRules, nodeSelectorProblem } from "./rules.ts"
import { readHostClass, type WatchedHostClass } from "./WatchedHostClass.ts"

interface Verdict {
  readonly accepted: boolean
  readonly reason: string
  readonly message: string
}

/** Whether models can be deployed on the class, and why not. */
const verdictOf = (watched: WatchedHostClass): Verdict => {
  const podClass = Option.getOrNull(toPodClass(watched))
  const no = (reason: string, message: string): Verdict => ({ accepted: false, reason, message })
  const read = readHostClass(watched)
  if (Result.isFailure(read)) return no("Unreadable", `Seatrial cannot read this specification: ${read.failure}. Correct the field, or delete the object.`)
  const object = read.success
  if (podClass === null)
    return no(
      "InvalidName",
      'The name of a host class must consist of at most 63 lowercase letters, digits and hyphens, and must not be "any", which is a reserved name.'
    )
  if (podClass.nodes > 1) {
    return no(
      "SeveralNodesNotAvailable",
      `The class has nodes: ${podClass.nodes}, which is not supported yet, so nothing is deployed on this class. Create a HostClass with nodes: 1.`
    )
  }
  const selector = nodeSelectorProblem(object.spec.nodeSelector ?? {})
  if (selector !== null) return no("InvalidNodeSelector", `${selector}, so no pod can be created for this class.`)
  const broken = brokenRule(hostClassRules, object)
  if (broken !== null) return no("Invalid", `${broken}.`)
  const { runtimes } = podClass.hostClass
  const unknown = runtimes.filter(({ runtime }) => engineFor(runtime) === undefined).map(({ runtime }) => runtime)
  if (unknown.length === runtimes.length)
    return no("NoRuntimeAdapter", `Seatrial does not support the runtime ${unknown.join(", ")}, so nothing can be deployed on this class.`)
  return { accepted: true, reason: "Accepted", message: "Models can be deployed on this class." }
}

const known = new WeakMap<WatchedHostClass, Verdict>()

/** Whether models can be deployed on the class, and why not. Computed once for each version of the object. */
export const classVerdict = (watched: WatchedHostClass): Verdict => {
  const before = known.get(watched)
  if (before !== undefined) return before
  const verdict = verdictOf(watched)
  known.set(watched, verdict)
  return verdict
}

/**
 * The classes on which models can be deployed. Engines that run on another class continue, and start again on it: it
 * is only closed for new runs.
 */
export const openClasses = (objects: ReadonlyArray<WatchedHostClass>): ReadonlyArray<PodClass> =>
  objects.filter((object) => classVerdict(object).accepted).flatMap((object) => Option.toArray(toPodClass(object)))
