import type { Json } from "./Json.ts"
import { at, isList, isObject } from "./Json.ts"

type Step = (values: ReadonlyArray<Json>) => ReadonlyArray<Json>

const defined = (value: Json | undefined): ReadonlyArray<Json> => (value === undefined ? [] : [value])

const field =
  (name: string): Step =>
  (values) =>
    values.flatMap((value) => defined(at(value, name)))

const each: Step = (values) => values.flatMap((value) => (isList(value) ? [...value] : isObject(value) ? Object.values(value) : []))

const index =
  (position: number): Step =>
  (values) =>
    values.flatMap((value) => (isList(value) ? defined(value.at(position)) : []))

const where =
  (path: ReadonlyArray<string>, wanted: string): Step =>
  (values) =>
    each(values).filter((value) => String(at(value, ...path)) === wanted)

const token = /\.((?:\\.|[^.[\\])+)|\[(\*|-?\d+)\]|\['((?:[^'])+)'\]|\[\?\(@\.([\w.]+)\s*==\s*["']([^"']*)["']\)\]/gy

/**
 * The first value that the JSONPath of a printer column selects. Supports fields, indices, `[*]` and `[?(@.a=="b")]`
 * filters.
 */
export const jsonPath = (path: string): ((value: Json) => Json | undefined) => {
  const steps = [...path.matchAll(token)].map(([, name, position, quoted, filter, wanted]): Step => {
    if (name !== undefined) return field(name.replaceAll(/\\(.)/g, "$1"))
    if (quoted !== undefined) return field(quoted)
    if (filter !== undefined) return where(filter.split("."), wanted ?? "")
    return position === "*" ? each : index(Number(position))
  })
  return (value) => steps.reduce<ReadonlyArray<Json>>((values, step) => step(values), [value])[0]
}
