import { Result } from "effect"
import { at, fieldsAt, type Json, type JsonObject } from "./Json.ts"
import type { Kind } from "./Kind.ts"
import { apiVersionOf } from "./Kind.ts"
import { KubeStatus } from "./KubeStatus.ts"
import { storedMember } from "./present.ts"

export type Matches = (object: JsonObject) => boolean

const everything: Matches = () => true

const setBased = /^([\w./-]+)\s+(in|notin)\s+\(([^()]*)\)$/
const equality = /^([\w./-]+)\s*(==|=|!=)\s*([\w.-]*)$/
const existence = /^(!?)\s*([\w./-]+)$/

const requirement = (text: string): ((labels: JsonObject) => boolean) | undefined => {
  const set = setBased.exec(text)
  if (set !== null) {
    const [, key = "", operator, list = ""] = set
    const values = list.split(",").map((one) => one.trim())
    const inSet = (labels: JsonObject) => {
      const value = labels[key]
      return typeof value === "string" && values.includes(value)
    }
    return operator === "in" ? inSet : (labels) => !inSet(labels)
  }
  const equal = equality.exec(text)
  if (equal !== null) {
    const [, key = "", operator, value] = equal
    return operator === "!=" ? (labels) => labels[key] !== value : (labels) => labels[key] === value
  }
  const exists = existence.exec(text)
  if (exists === null) return undefined
  const [, not, key = ""] = exists
  return (labels) => Object.hasOwn(labels, key) !== (not === "!")
}

/** Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k`; 400 if it is invalid. */
const labelSelector = (selector: string): Result.Result<Matches, KubeStatus> => {
  const parts = selector.split(/,(?![^(]*\))/).map((part) => part.trim())
  const requirements = parts.filter((part) => part !== "").map((part) => requirement(part))
  if (requirements.some((one) => one === undefined)) return Result.fail(KubeStatus.badRequest(`unable to parse requirement: ${selector}`))
  return Result.succeed((object) => {
    const labels = fieldsAt(object, "metadata", "labels")
    return requirements.every((one) => one === undefined || one(labels))
  })
}

const plain = (value: Json | undefined): string => (value === undefined || value === null ? "" : String(value))

/** Parses `metadata.name=a,spec.nodeName!=b` with the fields that the kind allows; 400 for any other field. */
const fieldSelector = (kind: Kind, selector: string): Result.Result<Matches, KubeStatus> => {
  const requirements: Array<Matches> = []
  for (const part of selector.split(",").filter((one) => one !== "")) {
    const [, path, operator, value = ""] = /^([^=!]+)(==|=|!=)(.*)$/.exec(part) ?? []
    if (path === undefined) return Result.fail(KubeStatus.badRequest(`invalid field selector: ${part}`))
    if (path !== "metadata.name" && path !== "metadata.namespace" && !kind.selectable.includes(path)) {
      return Result.fail(
        KubeStatus.badRequest(
          `Unable to find ${JSON.stringify(`${apiVersionOf(kind)}, Resource=${kind.plural}`)} that match label selector "", field selector "${selector}": field label not supported: ${path}`
        )
      )
    }
    const [member = "", ...rest] = path.split(".")
    const steps = [storedMember(kind, member), ...rest]
    requirements.push((object) => (plain(at(object, ...steps)) === value) !== (operator === "!="))
  }
  return Result.succeed((object) => requirements.every((one) => one(object)))
}

/** The filter of a list or watch by `labelSelector` and `fieldSelector`. */
export const selection = (kind: Kind, query: URLSearchParams): Result.Result<Matches, KubeStatus> =>
  Result.gen(function* () {
    const labels = query.get("labelSelector")
    const fields = query.get("fieldSelector")
    const byLabels = labels === null ? everything : yield* labelSelector(labels)
    const byFields = fields === null ? everything : yield* fieldSelector(kind, fields)
    return (object) => byLabels(object) && byFields(object)
  })
