import { RopeFacts } from "@seatrial/domain"
import { Option, Predicate, Schema } from "effect"
import type { ConfigReader } from "./ConfigReader.ts"

const decode = Schema.decodeUnknownOption(RopeFacts)

/**
 * How a model encodes positions, if one way with a dictionary or a base frequency applies to all layers; null
 * otherwise. The length is the trained one before any scaling.
 */
export const ropeFacts = (reader: ConfigReader, nested: boolean): RopeFacts | null => {
  const rope = reader.value("rope_parameters") ?? reader.value("rope_scaling")
  const dictionary = Predicate.isObject(rope) ? rope : {}
  if (reader.has("rope_local_base_freq") || Object.values(dictionary).some((value) => Predicate.isObject(value))) return null
  const theta = dictionary.rope_theta ?? reader.value("rope_theta")
  if (theta === undefined && Object.keys(dictionary).length === 0) return null
  const parameters = Object.fromEntries(
    Object.entries({ ...dictionary, ...(theta === undefined ? {} : { rope_theta: theta }) }).filter(([, value]) => value !== null)
  )
  const max_positions = dictionary.original_max_position_embeddings ?? reader.value("max_position_embeddings")
  return Option.getOrNull(decode({ parameters, nested, max_positions }))
}
