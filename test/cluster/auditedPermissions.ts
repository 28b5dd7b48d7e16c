import { readFile } from "node:fs/promises"
import { Effect, Option, Schema } from "effect"
import { type Permission, permission } from "./Permission.ts"

const Entry = Schema.fromJsonString(
  Schema.Struct({
    verb: Schema.String,
    requestURI: Schema.String,
    user: Schema.Struct({ username: Schema.String }),
    objectRef: Schema.optionalKey(
      Schema.Struct({
        resource: Schema.String,
        apiGroup: Schema.optionalKey(Schema.String),
        subresource: Schema.optionalKey(Schema.String),
        namespace: Schema.optionalKey(Schema.String),
        name: Schema.optionalKey(Schema.String)
      })
    ),
    responseStatus: Schema.optionalKey(Schema.Struct({ code: Schema.optionalKey(Schema.Int) }))
  })
)

/** What an account did at the API server, by its audit log: the permissions that it used, and the requests that were denied it. */
export const auditedPermissions = (path: string, username: string) =>
  Effect.promise(async () => {
    const lines = (await readFile(path, "utf8")).split("\n").filter((line) => line !== "")
    const used = new Set<Permission>()
    const denied = new Set<string>()
    for (const line of lines) {
      const entry = Option.getOrUndefined(Schema.decodeUnknownOption(Entry)(line))
      if (entry === undefined || entry.user.username !== username) continue
      const { objectRef, requestURI, verb } = entry
      const code = entry.responseStatus?.code ?? 0
      if (objectRef === undefined || code === 403) {
        denied.add(`${verb} ${requestURI} ${code}`)
        continue
      }
      const resource = objectRef.subresource === undefined ? objectRef.resource : `${objectRef.resource}/${objectRef.subresource}`
      const allow = (name: string) => used.add(permission(objectRef.namespace, name, objectRef.apiGroup ?? "", resource))
      allow(verb)
      // An apply that makes its object is asked for both.
      if (verb === "patch" && code === 201) allow("create")
    }
    return { used: [...used].sort(), denied: [...denied].sort() }
  })
