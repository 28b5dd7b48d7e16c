import { Effect } from "effect"
import { followAudit } from "./auditLog.ts"
import { type Permission, permission } from "./Permission.ts"

/** What an account did at the API server, by its audit log: the permissions that it used, and the requests that were denied it. */
export const auditedPermissions = (path: string, username: string) =>
  Effect.map(followAudit(path), (entries) => {
    const used = new Set<Permission>()
    const denied = new Set<string>()
    for (const { objectRef, requestURI, responseStatus, user, verb } of entries) {
      if (user.username !== username) continue
      const code = responseStatus?.code ?? 0
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
