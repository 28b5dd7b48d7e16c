import { Schema } from "effect"
import type { Fit } from "./fit.ts"
import { HostClassName } from "./serving.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** What the nodes of a host class have now. `free_engines`: engines that find all their GPUs free on one node. */
export const ClassCapacity = Schema.Struct({ gpus: Count, free_gpus: Count, free_engines: Count })
export type ClassCapacity = typeof ClassCapacity.Type
export type ClassCapacities = ReadonlyMap<string, ClassCapacity>

/**
 * Which of the host classes on which a model fits have free GPUs now. `message`: what a deployment would wait for, and
 * what to do; null if it would not wait.
 */
export const PreviewPlacement = Schema.Struct({
  message: Schema.NullOr(Schema.String),
  host_classes: Schema.Array(
    Schema.Struct({
      host_class: HostClassName,
      verdict: Schema.Literals(["fits", "tight"]),
      gpu_count: Schema.Int,
      has_room: Schema.Boolean,
      ...ClassCapacity.fields
    })
  )
})
export type PreviewPlacement = typeof PreviewPlacement.Type

/** A host class and its GPUs, for a message. */
export interface ClassGpus {
  readonly name: string
  readonly gpus: number
  readonly freeGpus: number
}

/** For example `h100 (0 of 8 free)`. */
export const freeInWords = ({ freeGpus, gpus, name }: ClassGpus): string => `${name} (${freeGpus} of ${gpus} free)`

/** The host class on which a model would start now. `remedy`: what to do for that. */
export const otherClassInWords = ({ freeGpus, name }: Pick<ClassGpus, "freeGpus" | "name">, remedy: string): string =>
  `Host class ${name} has ${freeGpus} free ${freeGpus === 1 ? "GPU" : "GPUs"}, and the model fits there. To use this class, ${remedy}.`

/** The `host_class` with which a deployment starts on the first of these that has room, as a caller writes it. */
export const choiceInWords = (names: ReadonlyArray<string>): string => `\`host_class: [${names.join(", ")}]\` or \`host_class: any\``

interface PlacementInput {
  /** On the class that was chosen. */
  readonly fit: Fit
  readonly alternatives: ReadonlyArray<Fit>
  /** On all classes that the request leaves open, the chosen one among them. */
  readonly open: ReadonlyArray<Fit>
  readonly capacities: ClassCapacities
}

export const placementOf = ({ alternatives, capacities, fit, open }: PlacementInput): PreviewPlacement => {
  const allowed = new Set(open.map(({ host_class }) => host_class))
  const host_classes = [fit, ...alternatives].flatMap(({ gpu_count, host_class, verdict }) => {
    const capacity = capacities.get(host_class)
    return capacity === undefined ? [] : [{ host_class, verdict, gpu_count, has_room: capacity.free_engines > 0, ...capacity }]
  })
  const isAllowed = ({ host_class }: { readonly host_class: string }) => allowed.has(host_class)
  const own = open.flatMap(({ host_class }) => host_classes.find((each) => each.host_class === host_class) ?? [])
  if (own.length === 0 || own.some(({ has_room }) => has_room)) return { message: null, host_classes }
  const wordsOf = own.map(({ free_gpus, gpus, host_class }) => freeInWords({ name: host_class, gpus, freeGpus: free_gpus }))
  const waits = `A deployment would wait for GPUs of class ${wordsOf.join(", ")}.`
  const other = host_classes.find((each) => each.has_room && !isAllowed(each))
  const hint =
    other === undefined
      ? ""
      : ` ${otherClassInWords({ name: other.host_class, freeGpus: other.free_gpus }, `deploy with ${choiceInWords([...allowed, other.host_class])}`)}`
  return { message: `${waits}${hint}`, host_classes }
}
