import type { Runtime, ServingSettings } from "./serving.ts"

/** The flags of an engine whose meaning Seatrial knows outside its adapter. Null or empty: the engine has none. */
interface FlagNames {
  /** How many requests the engine computes at once. */
  readonly slots: string | null
  /** Flags with which a caller replaces the repository's sampling defaults. */
  readonly sampling: ReadonlyArray<string>
  /** Further flags whose value follows from the model itself. */
  readonly parsers: ReadonlyArray<string>
  /** The flag and the value with which the engine uses its own sampling defaults, if the gateway fills in defaults. */
  readonly ownSampling: { readonly flag: string; readonly value: string } | null
  /** Quantizes the weights when the engine starts. */
  readonly quantization: string | null
  /** Makes answers independent of the other requests of a batch. */
  readonly batchInvariant: string | null
  /** Leaves out the parts of the model that read images. */
  readonly textOnly: string | null
}

const parsers = ["reasoning_parser", "tool_call_parser"]

export const flagNames: Readonly<Record<Runtime, FlagNames>> = {
  vllm: {
    slots: "max_num_seqs",
    sampling: ["generation_config", "override_generation_config"],
    parsers,
    ownSampling: null,
    quantization: "quantization",
    batchInvariant: "batch_invariant",
    textOnly: "language_model_only"
  },
  sglang: {
    slots: "max_running_requests",
    sampling: ["sampling_defaults"],
    parsers,
    ownSampling: { flag: "sampling_defaults", value: "openai" },
    quantization: "quantization",
    batchInvariant: "enable_deterministic_inference",
    textOnly: null
  },
  reference: { slots: "max_num_seqs", sampling: [], parsers: [], ownSampling: null, quantization: null, batchInvariant: null, textOnly: null }
}

/** The name under which a revision lists who chose its sampling defaults. */
export const samplingChoice = "sampling_defaults"

const all = Object.values(flagNames)
const allOf = (pick: (names: FlagNames) => ReadonlyArray<string | null>): ReadonlyArray<string> => [
  ...new Set(all.flatMap(pick).filter((name) => name !== null))
]
const anyOf =
  (pick: (names: FlagNames) => string | null) =>
  (flags: Readonly<Record<string, unknown>> = {}): boolean =>
    allOf((names) => [pick(names)]).some((flag) => flags[flag] === true)

/** The flags of all engines with the number of slots. */
export const slotFlags = allOf(({ slots }) => [slots])
export const samplingFlags = allOf(({ sampling }) => sampling)
/** Flags that follow from the model itself unless a caller sets them. */
export const modelFlags = allOf((names) => [...names.parsers, ...names.sampling])
export const ownSampling = all.map((names) => names.ownSampling).filter((each) => each !== null)

/** How many requests the engine computes at once; null if the settings do not say. */
export const slotsOf = ({ engine_flags: flags = {} }: Pick<ServingSettings, "engine_flags">): number | null =>
  slotFlags.map((flag) => flags[flag]).find((value) => typeof value === "number") ?? null

export const isBatchInvariant = anyOf(({ batchInvariant }) => batchInvariant)
export const isTextOnly = anyOf(({ textOnly }) => textOnly)

/** Whether the engine quantizes the weights of the repository when it starts. */
export const quantizesAtStart = ({ engine_flags: flags = {} }: Pick<ServingSettings, "engine_flags">): boolean =>
  allOf(({ quantization }) => [quantization]).some((flag) => (flags[flag] ?? null) !== null)
