import { optionalNullable } from "@seatrial/domain"
import { Option, Schema } from "effect"
import type { PinnedRepository } from "./SuiteSubject.ts"

const EndIds = optionalNullable(Schema.Union([Schema.Int, Schema.Array(Schema.Int)]))
const ends = { eos_token_id: EndIds, vocab_size: optionalNullable(Schema.Int) }
const Config = Schema.fromJsonString(
  Schema.Struct({
    ...ends,
    text_config: optionalNullable(Schema.Struct(ends)),
    num_hidden_layers: optionalNullable(Schema.Int),
    layer_types: optionalNullable(Schema.Array(Schema.String))
  })
)
const decodeConfig = Schema.decodeUnknownOption(Config)
const decodeGeneration = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ eos_token_id: EndIds })))

const idsOf = (value: number | ReadonlyArray<number> | null | undefined): ReadonlyArray<number> =>
  value == null ? [] : typeof value === "number" ? [value] : value

/** The ids that end an answer, as the configuration and the generation settings state them. */
export const configuredEnds = (small: ReadonlyMap<string, string>) => {
  const own = Option.getOrNull(decodeConfig(small.get("config.json")))
  return {
    own,
    configured: idsOf(own?.eos_token_id ?? own?.text_config?.eos_token_id),
    generation: idsOf(Option.getOrNull(decodeGeneration(small.get("generation_config.json")))?.eos_token_id)
  }
}

/**
 * The ids that end an answer in every engine, from the generation settings, or from the configuration if the settings
 * name none.
 */
export const endIdsOf = ({ small }: Pick<PinnedRepository, "small">): ReadonlySet<number> => {
  const { configured, generation } = configuredEnds(small)
  return new Set(generation.length > 0 ? generation : configured)
}
