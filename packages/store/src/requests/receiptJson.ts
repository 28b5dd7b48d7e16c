import { isoText } from "../columns.ts"
import { finite, objectText, orNull, plain, words } from "./requestJson.ts"

const micros = (of: string): string => plain(`t.${of}_micros_per_mtok`)

const present = (name: string, column: string): string => `CASE WHEN ${column} IS NULL THEN '' ELSE ',"${name}":' || ${words(column)} END`

/**
 * SQL for a row of `receipts` AS `t` as the wire's JSON text, with the serving revision `r` if there is one. Optional
 * values are absent, not null.
 */
export const receiptJson = objectText(
  [
    ["request_id", plain("t.request_id")],
    ["model", words("t.model")],
    ["hf_revision", words("t.hf_revision")],
    ["engine_version", words("t.engine_version")],
    ["verification", orNull("r.verification::text")],
    ["endpoint", words("t.endpoint")],
    [
      "usage",
      objectText([
        ["input_tokens", "t.input_tokens"],
        ["output_tokens", "t.output_tokens"],
        ["cache_read_tokens", orNull("t.cache_read_tokens::text")],
        ["cache_write_tokens", orNull("t.cache_write_tokens::text")]
      ])
    ],
    [
      "prices",
      objectText([
        ["input_micros_per_mtok", micros("input")],
        ["output_micros_per_mtok", micros("output")],
        ["cache_read_micros_per_mtok", micros("cache_read")],
        ["cache_write_micros_per_mtok", micros("cache_write")]
      ])
    ],
    ["cost_micros", plain("t.cost_micros")],
    ["ttft_ms", finite("t.ttft_ms")],
    ["latency_ms", finite("t.latency_ms")],
    ["finish_reason", orNull(words("t.finish_reason"))],
    ["status_code", "t.status_code"],
    ["streamed", "t.streamed::text"],
    ["created_at", `'"' || ${isoText("t.created_at")} || '"'`]
  ],
  [
    present("note", "t.note"),
    present("config_revision", "t.revision_id"),
    present("base_hf_revision", "r.base_hf_revision"),
    present("adapter_hf_revision", "CASE WHEN r.base_hf_revision IS NOT NULL THEN t.hf_revision END"),
    present("adapter_content_hash", "r.adapter_content_hash")
  ]
)
