import * as Predicate from "effect/Predicate"
import { begin, either, type Grammar, later, literal, sequence } from "./Grammar.ts"
import { anyObject, anyValue, colon, comma, decimal, integer, list, longest, map, text } from "./json.ts"

/** A schema with an unsupported keyword. The message names the location and the reason. */
export class UnsupportedSchema extends Error {
  override readonly name = "UnsupportedSchema"
}

const refuse = (at: string, why: string): never => {
  throw new UnsupportedSchema(`${at || "the schema"}: ${why}`)
}

type Fields = Readonly<Record<string, unknown>>

/** Keywords that do not restrict values. */
const remarks = new Set([
  "title",
  "description",
  "default",
  "examples",
  "$schema",
  "$id",
  "$comment",
  "$defs",
  "definitions",
  "deprecated",
  "readOnly",
  "writeOnly"
])
const ofType: Readonly<Record<string, ReadonlySet<string>>> = {
  object: new Set(["properties", "required", "additionalProperties"]),
  array: new Set(["items", "minItems", "maxItems"]),
  string: new Set(["minLength", "maxLength"]),
  integer: new Set(["minimum", "maximum"]),
  number: new Set(),
  boolean: new Set(),
  null: new Set()
}
/** The widest range of integers that is enumerated. */
const widestRange = 4_096
const mostChoices = 1_024
const deepest = 64

const isFields = (value: unknown): value is Fields => Predicate.isReadonlyObject(value) && !Array.isArray(value)

const count = (fields: Fields, key: string, fallback: number, at: string): number => {
  const value = fields[key] ?? fallback
  return typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : refuse(at, `${key} must be a whole number from 0`)
}

/** JSON with an optional space after commas and colons. */
const written = (value: unknown): Grammar => {
  if (Array.isArray(value)) return sequence(literal("["), ...value.flatMap((one, i) => (i === 0 ? [written(one)] : [comma, written(one)])), literal("]"))
  if (!isFields(value)) return literal(JSON.stringify(value) ?? "null")
  const members = Object.entries(value).flatMap(([key, one], i) => [...(i === 0 ? [] : [comma]), literal(JSON.stringify(key)), colon, written(one)])
  return sequence(literal("{"), ...members, literal("}"))
}

const isNames = (value: unknown): value is ReadonlyArray<string> => Array.isArray(value) && value.every((name) => typeof name === "string")

interface Member {
  readonly needed: boolean
  readonly grammar: Grammar
}

/** The texts of the members in their order, without those that are not needed. */
const membersFrom = (members: ReadonlyArray<Member>): Grammar => {
  // The texts that may follow the members before `index`. `first`: whether none of them was written.
  const known = new Map<string, Grammar>()
  const from = (index: number, first: boolean): Grammar => {
    const key = `${index} ${first}`
    const before = known.get(key)
    if (before !== undefined) return before
    const member = members[index]
    if (member === undefined) return sequence()
    const taken = sequence(...(first ? [] : [comma]), member.grammar, from(index + 1, false))
    const grammar = member.needed ? taken : either(taken, from(index + 1, first))
    known.set(key, grammar)
    return grammar
  }
  return from(0, true)
}

/** Compiles one schema and everything that it refers to. */
class Compiler {
  private readonly root: unknown
  private readonly referred = new Map<string, Grammar | null>()
  private depth = 0
  /** The keywords that determine a schema by themselves, in the order in which they are looked up. */
  private readonly sole: ReadonlyArray<readonly [keyword: string, compile: (value: unknown, at: string) => Grammar]> = [
    ["$ref", (target, at) => this.reference(target, at)],
    ["const", written],
    ["enum", (choices, at) => this.choices(choices, at)],
    ["anyOf", (choices, at) => this.alternatives(choices, at)],
    ["oneOf", (_, at) => refuse(at, "the keyword oneOf is not supported; anyOf is")]
  ]

  constructor(root: unknown) {
    this.root = root
  }

  compile(schema: unknown, at: string): Grammar {
    if (++this.depth > deepest) refuse("", `it is nested more than ${deepest} times`)
    const grammar = this.compileAll(schema, at)
    this.depth--
    return grammar
  }

  private compileAll(schema: unknown, at: string): Grammar {
    if (schema === true) return anyValue
    if (!isFields(schema)) return refuse(at, "a schema must be an object")
    for (const [keyword, compile] of this.sole) {
      if (schema[keyword] === undefined) continue
      this.only(schema, keyword, at)
      return compile(schema[keyword], at)
    }
    const types = this.types(schema, at)
    return types.length === 0 ? anyValue : either(...types.map((type) => this.typed(type, schema, at)))
  }

  private choices(choices: unknown, at: string): Grammar {
    if (!Array.isArray(choices) || choices.length === 0 || choices.length > mostChoices) return refuse(at, `enum must be a list of 1 to ${mostChoices}`)
    return either(...choices.map(written))
  }

  private alternatives(choices: unknown, at: string): Grammar {
    if (!Array.isArray(choices) || choices.length === 0) return refuse(at, "anyOf must be a list that is not empty")
    return either(...choices.map((choice, i) => this.compile(choice, `${at}/anyOf/${i}`)))
  }

  /** The types of the schema. Refuses a keyword that belongs to none of them. */
  private types(schema: Fields, at: string): ReadonlyArray<string> {
    const types = schema.type === undefined ? this.impliedTypes(schema) : Array.isArray(schema.type) ? schema.type : [schema.type]
    const known = types.flatMap((type) => (typeof type === "string" && Object.hasOwn(ofType, type) ? [type] : []))
    if (known.length !== types.length) return refuse(at, "unknown type")
    for (const key of Object.keys(schema)) {
      if (key === "type" || remarks.has(key) || known.some((type) => ofType[type]?.has(key))) continue
      refuse(at, `the keyword ${key.slice(0, 40)} is not supported`)
    }
    return known
  }

  /** Checks that a keyword has no siblings except annotations. */
  private only(schema: Fields, keyword: string, at: string) {
    const other = Object.keys(schema).find((key) => key !== keyword && key !== "type" && !remarks.has(key))
    if (other !== undefined) refuse(at, `the keyword ${other.slice(0, 40)} is not supported beside ${keyword}`)
  }

  private impliedTypes(schema: Fields): ReadonlyArray<string> {
    return schema.properties !== undefined || schema.required !== undefined ? ["object"] : schema.items !== undefined ? ["array"] : []
  }

  private typed(type: string, schema: Fields, at: string): Grammar {
    switch (type) {
      case "object":
        return this.object(schema, at)
      case "array": {
        const least = count(schema, "minItems", 0, at)
        const most = count(schema, "maxItems", Math.max(least, longest.items), at)
        if (least > most) refuse(at, "minItems is above maxItems")
        return list(schema.items === undefined ? anyValue : this.compile(schema.items, `${at}/items`), least, most)
      }
      case "string": {
        const least = count(schema, "minLength", 0, at)
        const most = count(schema, "maxLength", Math.max(least, longest.text), at)
        return least > most ? refuse(at, "minLength is above maxLength") : text(least, most)
      }
      case "integer":
        return this.integers(schema, at)
      case "number":
        return decimal
      case "boolean":
        return either(literal("true"), literal("false"))
      default:
        return literal("null")
    }
  }

  private integers({ maximum, minimum }: Fields, at: string): Grammar {
    if (minimum === undefined && maximum === undefined) return integer
    if (typeof minimum !== "number" || typeof maximum !== "number") return refuse(at, "minimum and maximum are supported together only")
    const [low, high] = [Math.ceil(minimum), Math.floor(maximum)]
    if (!(low <= high && high - low < widestRange)) return refuse(at, `from minimum to maximum at most ${widestRange} numbers are supported`)
    return either(...Array.from({ length: high - low + 1 }, (_, i) => literal(String(low + i))))
  }

  /** Members in the order of the schema. The schema may allow others, but they are never generated. */
  private object(schema: Fields, at: string): Grammar {
    const { additionalProperties: additional, properties = {}, required = [] } = schema
    if (!isFields(properties)) return refuse(at, "properties must be an object")
    if (!isNames(required)) return refuse(at, "required must be a list of names")
    const needed = new Set(required)
    const missing = [...needed].filter((name) => !Object.hasOwn(properties, name))
    if (missing.length > 0 && additional === false) return refuse(at, "a required member is not among properties")
    if (schema.properties === undefined && needed.size === 0 && additional !== false) return this.map(additional, at)
    if (additional !== undefined && typeof additional !== "boolean") this.compile(additional, `${at}/additionalProperties`)
    const entries = [...Object.entries(properties), ...missing.map((name): readonly [string, unknown] => [name, true])]
    const members = entries.map(([name, value]) => ({
      needed: needed.has(name),
      grammar: sequence(literal(JSON.stringify(name)), colon, this.compile(value, `${at}/properties/${name.slice(0, 40)}`))
    }))
    return sequence(literal("{"), membersFrom(members), literal("}"))
  }

  /** Members with any names. */
  private map(values: unknown, at: string): Grammar {
    return values === undefined || values === true ? anyObject : map(this.compile(values, `${at}/additionalProperties`))
  }

  private reference(target: unknown, at: string): Grammar {
    if (typeof target !== "string" || !target.startsWith("#")) return refuse(at, "only references within the schema are supported")
    if (!this.referred.has(target)) {
      this.referred.set(target, null)
      let referredTo: unknown = this.root
      for (const step of target
        .slice(1)
        .split("/")
        .filter((part) => part !== "")) {
        const name = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")
        referredTo = isFields(referredTo) && Object.hasOwn(referredTo, name) ? referredTo[name] : refuse(at, "a reference leads nowhere")
      }
      this.referred.set(target, this.compile(referredTo, target))
    }
    return later(() => this.referred.get(target) ?? refuse(at, "a reference leads to itself"))
  }
}

/**
 * The texts that are valid by a JSON schema. Supported keywords: `type`, `enum`, `const`, `properties`, `required`,
 * `additionalProperties`, `items`, `minItems`, `maxItems`, `minLength`, `maxLength`, integers from `minimum` to
 * `maximum`, `anyOf`, and `$ref` within the schema. Throws `UnsupportedSchema` for any other keyword.
 */
export const schemaGrammar = (schema: unknown): Grammar => {
  const grammar = new Compiler(schema).compile(schema, "")
  return begin(grammar).dead ? refuse("", "a reference leads to itself") : grammar
}
