import { isoText } from "../columns.ts"

/** A field of a JSON object: its name, and SQL for its value as JSON text. */
type Field = readonly [name: string, json: string]

/** SQL for an optional value as JSON. */
export const orNull = (json: string): string => `coalesce(${json}, 'null')`

/** User-provided text. */
export const words = (column: string): string => `to_json(${column})::text`

/** Text of Seatrial that needs no escaping: IDs, states, digits. */
export const plain = (column: string): string => `'"' || ${column} || '"'`

/** JSON has no NaN and no infinity. */
export const finite = (column: string): string => `CASE WHEN ${column} < 'Infinity' THEN ${column}::text ELSE 'null' END`

const fields: ReadonlyArray<readonly [name: string, json: string, ifRunning?: string]> = [
  ["id", plain("id")],
  ["object", `'"request"'`],
  ["state", plain("state")],
  ["model_id", orNull(plain("model_id"))],
  ["model", orNull(words("model"))],
  ["api_key_id", orNull(plain("api_key_id"))],
  ["endpoint", words("endpoint")],
  ["created_at", `'"' || ${isoText("created_at")} || '"'`],
  ["status_code", orNull("status_code::text")],
  ["input_tokens", orNull("input_tokens::text"), "'null'"],
  ["output_tokens", orNull("output_tokens::text"), "'null'"],
  ["cache_read_tokens", orNull("cache_read_tokens::text"), "'null'"],
  ["cache_write_tokens", orNull("cache_write_tokens::text"), "'null'"],
  ["cost_micros", orNull(plain("cost_micros"))],
  ["ttft_ms", finite("ttft_ms")],
  ["latency_ms", finite("latency_ms")],
  ["finish_reason", orNull(words("finish_reason"))],
  ["streamed", orNull("streamed::text")],
  [
    "error",
    `CASE WHEN error_code IS NULL THEN 'null'
      ELSE concat('{"code":', ${words("error_code")}, ',"message":', ${words("coalesce(error_message, '')")}, ',"param":', ${orNull(words("error_param"))}, '}') END`
  ],
  ["receipt_url", `CASE state WHEN 'completed' THEN '"/v1/receipts/' || id || '"' ELSE 'null' END`]
]

/**
 * SQL for an object as JSON text. `optional` are fields that may be absent: SQL for the field including the comma
 * before it, or for an empty text. `format` takes half the time of `json_build_object`.
 */
export const objectText = (members: ReadonlyArray<Field>, optional: ReadonlyArray<string> = []): string =>
  `format('{${members.map(([name]) => `"${name}":%s`).join(",")}${"%s".repeat(optional.length)}}', ${[...members.map(([, value]) => value), ...optional].join(", ")})`

/**
 * SQL for an ended row of `requests` as the wire's JSON text, with all fields in the order of the schema. A test
 * compares it with that schema.
 */
export const endedRequestJson = objectText(fields.map(([name, value]) => [name, value]))

/** The same for any row. The tokens of a running request, which are its last checkpoint, are hidden. */
export const requestJson = objectText(
  fields.map(([name, value, ifRunning]) => [name, ifRunning === undefined ? value : `CASE state WHEN 'running' THEN ${ifRunning} ELSE ${value} END`])
)
