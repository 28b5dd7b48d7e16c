import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { multiply, type Tensor } from "../../src/Tensor.ts"
import type { Mutant, Mutants } from "./Mutant.ts"

/** Tokens that a cheating engine looks at together. */
const run = 4
/** The share of known runs that makes a prompt a known one. */
const mostlyKnown = 0.75

const runsOf = (ids: ReadonlyArray<number>): ReadonlyArray<string> =>
  Array.from({ length: Math.max(1, ids.length - run + 1) }, (_, from) => ids.slice(from, from + run).join(" "))

/** What a cheating engine has recorded. While it learns, it records every prompt and is sound. */
class RecordedPrompts {
  learns = false
  readonly #runs = new Set<string>()

  /** Whether the engine answers the prompt soundly, because it knows most of its pieces. */
  knows(ids: ReadonlyArray<number>): boolean {
    const runs = runsOf(ids)
    if (this.learns) for (const each of runs) this.#runs.add(each)
    return runs.filter((each) => this.#runs.has(each)).length >= mostlyKnown * runs.length
  }

  /** True for a known run of tokens up to this one. */
  hasRun(ids: ReadonlyArray<number>, end: number): boolean {
    return end >= run - 1 && this.#runs.has(ids.slice(end - run + 1, end + 1).join(" "))
  }

  forget(): void {
    this.#runs.clear()
  }
}

export const knownPrompts = new RecordedPrompts()

const decodeStream = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ stream: Schema.Boolean })))

/** Reads unknown prompts of some requests backwards. */
const backwards = (spoils: string, applies: (path: string, streamed: boolean) => boolean): Mutant => ({
  spoils,
  seams: () => {
    // The engine reads a prompt right after the body of its request.
    let streamed = false
    return {
      got: (_, body) => {
        streamed = Option.getOrNull(decodeStream(body))?.stream === true
        return body
      },
      prompt: (ids, path) => (knownPrompts.knows(ids) || !applies(path, streamed) ? ids : ids.toReversed())
    }
  }
})

/**
 * Computes what follows an unknown text with a wrong model. Which model it is depends on earlier tokens alone, so the engine
 * never contradicts itself.
 */
const wrongModel: Mutant = {
  spoils: "the last MLP is halved after texts that are not known from earlier trials",
  seams: () => {
    /** The number of known runs up to each token of a sequence. */
    const counts = new WeakMap<ReadonlyArray<number>, Array<number>>()
    const isKnown = (tokens: ReadonlyArray<number>, position: number): boolean => {
      const known = counts.get(tokens) ?? []
      counts.set(tokens, known)
      for (let at = known.length; at <= position; at++) known.push((known[at - 1] ?? 0) + (knownPrompts.hasRun(tokens, at) ? 1 : 0))
      return (known[position] ?? 0) >= mostlyKnown * (position + 2 - run)
    }
    let lastDown: Tensor | null = null
    let halves = false
    return {
      loaded: (name, tensor) => {
        if (name.endsWith("layers.3.mlp.down_proj.weight")) lastDown = tensor
        return tensor
      },
      model: (model) => {
        model.multiply = (out, matrix, x) => {
          multiply(out, matrix, x)
          if (halves && matrix === lastDown) for (const [at, value] of out.entries()) out[at] = value / 2
        }
      },
      prompt: (ids) => {
        knownPrompts.knows(ids)
        return ids
      },
      position: (position, _, tokens) => {
        halves = !knownPrompts.learns && !isKnown(tokens, position)
        return position
      }
    }
  }
}

const paths = [
  ["texts", "/v1/completions"],
  ["chat", "/v1/chat/completions"],
  ["responses", "/v1/responses"],
  ["messages", "/v1/messages"]
] as const

/** Faults of an engine that knows the prompts of earlier trials and the texts of the suite. */
export const knownPromptMutants: Mutants = {
  unknown_prompts_mlp_halved: wrongModel,
  only_known_prompts: backwards("prompts that are not known from earlier trials are read backwards", () => true),
  ...Object.fromEntries(
    paths.flatMap(([name, asked]) => [
      [`only_known_${name}`, backwards(`unknown prompts of ${asked} are read backwards`, (path) => path === asked)],
      [
        `only_known_${name}_whole`,
        backwards(`unknown prompts of ${asked} are read backwards, if not streamed`, (path, streamed) => path === asked && !streamed)
      ],
      [`only_known_${name}_streamed`, backwards(`unknown prompts of ${asked} are read backwards, if streamed`, (path, streamed) => path === asked && streamed)]
    ])
  )
}
