import { Data } from "effect"
import type { JsonObject } from "./Json.ts"

/** One problem of an object, as an entry of `details.causes`. */
export interface Cause {
  readonly reason: string
  readonly field: string
  readonly message: string
}

/** The object in a message. `group` is empty for the core group. */
interface Named {
  readonly group: string
  readonly plural: string
  readonly kind: string
}

const qualified = ({ group, plural }: Named) => (group === "" ? plural : `${plural}.${group}`)

/** A refused or failed request, answered with a `Status` object. */
export class KubeStatus extends Data.TaggedError("KubeStatus")<{
  readonly code: number
  readonly reason: string
  readonly message: string
  readonly details?: JsonObject
}> {
  get body(): JsonObject {
    const { code, details, message, reason } = this
    return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, ...(details === undefined ? {} : { details }), code }
  }

  static badRequest = (message: string) => new KubeStatus({ code: 400, reason: "BadRequest", message })

  static notFound = (kind: Named, name: string) =>
    new KubeStatus({
      code: 404,
      reason: "NotFound",
      message: `${qualified(kind)} "${name}" not found`,
      details: { name, ...(kind.group === "" ? {} : { group: kind.group }), kind: kind.plural }
    })

  static noSuchPath = () => new KubeStatus({ code: 404, reason: "NotFound", message: "the server could not find the requested resource", details: {} })

  static methodNotAllowed = () =>
    new KubeStatus({ code: 405, reason: "MethodNotAllowed", message: "the server does not allow this method on the requested resource", details: {} })

  static alreadyExists = (kind: Named, name: string) =>
    new KubeStatus({
      code: 409,
      reason: "AlreadyExists",
      message: `${qualified(kind)} "${name}" already exists`,
      details: { name, ...(kind.group === "" ? {} : { group: kind.group }), kind: kind.plural }
    })

  static conflict = (kind: Named, name: string, why: string) =>
    new KubeStatus({
      code: 409,
      reason: "Conflict",
      message: `Operation cannot be fulfilled on ${qualified(kind)} "${name}": ${why}`,
      details: { name, ...(kind.group === "" ? {} : { group: kind.group }), kind: kind.plural }
    })

  static forbidden = (kind: Named, name: string, why: string, causes: ReadonlyArray<Cause> = []) =>
    new KubeStatus({
      code: 403,
      reason: "Forbidden",
      message: `${qualified(kind)} "${name}" is forbidden: ${why}`,
      details: {
        name,
        ...(kind.group === "" ? {} : { group: kind.group }),
        kind: kind.plural,
        ...(causes.length === 0 ? {} : { causes: causes.map(({ field, message, reason }) => ({ reason, message, field })) })
      }
    })

  static invalid = (kind: Named, name: string, causes: ReadonlyArray<Cause>) => {
    const lines = causes.map(({ field, message }) => `${field}: ${message}`)
    return new KubeStatus({
      code: 422,
      reason: "Invalid",
      message: `${kind.group === "" ? kind.kind : `${kind.kind}.${kind.group}`} "${name}" is invalid: ${lines.length === 1 ? lines[0] : `[${lines.join(", ")}]`}`,
      details: {
        name,
        ...(kind.group === "" ? {} : { group: kind.group }),
        kind: kind.kind,
        causes: causes.map(({ field, message, reason }) => ({ reason, message, field }))
      }
    })
  }

  static expired = (requested: number, oldest: number) =>
    new KubeStatus({ code: 410, reason: "Expired", message: `too old resource version: ${requested} (${oldest})` })
}
