import { defaultModelName } from "@seatrial/domain"
import type { Schema } from "effect"

/** The input of a create, independent of its spelling. */
export interface Wanted {
  readonly target:
    | { readonly _tag: "New"; readonly repo: string; readonly name: string | null }
    | { readonly _tag: "Redeploy"; readonly model: string | null; readonly id: string }
  readonly ref: string | null
  readonly serving: Readonly<Record<string, Schema.Json>>
  readonly serve: boolean
}

/** A canonical text for an input. */
export const meaningOf = ({ ref, serve, serving, target }: Wanted): string =>
  JSON.stringify([target._tag === "New" ? [target.repo, target.name ?? defaultModelName(target.repo)] : target.id, ref, serving, serve])

/** The input as a JSON value. `full`: with explicit defaults. */
const valueOf = ({ ref, serve, serving, target }: Wanted, full: boolean): Schema.Json => {
  const name = target._tag === "New" ? (target.name ?? (full ? defaultModelName(target.repo) : null)) : null
  return {
    ...(target._tag === "New"
      ? { source: { kind: "model_hub", repo: target.repo, ...(ref === null ? {} : { ref }) } }
      : { model_id: target.id, ...(ref === null ? {} : { ref }) }),
    ...(name === null ? {} : { model_name: name }),
    ...(Object.keys(serving).length > 0 || full ? { serving } : {}),
    ...(!serve || full ? { serve } : {})
  }
}

const isList = (value: Schema.Json): value is ReadonlyArray<Schema.Json> => Array.isArray(value)
const escaped = (text: string) => `"\\u${text.charCodeAt(0).toString(16).padStart(4, "0")}${JSON.stringify(text.slice(1)).slice(1)}`

/** JSON in an unusual spelling: reversed members, white space, escapes, exponents. */
const odd = (value: Schema.Json): string => {
  if (typeof value === "string") return value === "" ? '""' : escaped(value)
  if (typeof value === "number") return `${value / 10}e1`
  if (value === null || typeof value === "boolean") return String(value)
  if (isList(value)) return `[ ${value.map(odd).join(" ,\t")} ]`
  return `{\n${Object.entries(value)
    .reverse()
    .map(([name, member]) => ` ${escaped(name)} : ${odd(member)}`)
    .join("\r\n,")} }`
}

const reversed = (value: Schema.Json): Schema.Json =>
  typeof value !== "object" || value === null || isList(value)
    ? value
    : Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([name, member]) => [name, reversed(member)])
      )

/** One of four equivalent bodies: plain, with reversed members, with explicit defaults, and with explicit defaults in unusual JSON. */
export const spell = (wanted: Wanted, spelling: number): string => {
  if (spelling === 1) return JSON.stringify(reversed(valueOf(wanted, false)))
  if (spelling === 2) return JSON.stringify(valueOf(wanted, true))
  return spelling === 3 ? odd(valueOf(wanted, true)) : JSON.stringify(valueOf(wanted, false))
}
