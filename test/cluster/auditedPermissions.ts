import { Effect } from "effect"
import { followAudit } from "./auditLog.ts"
import { type Permission, permission } from "./Permission.ts"

/** What an account did at the API server, by its audit log: which of the permissions that it was granted it used, or what others, and the requests that were denied it. */
export const auditedPermissions = (path: string, username: string, granted: ReadonlyArray<Permission>) =>
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
      const allow = (did: string) => {
        const done = (namespace?: string, name?: string) => permission(namespace, did, objectRef.apiGroup ?? "", resource, name)
        const plain = done(objectRef.namespace)
        // A right of the whole cluster may be used in one namespace.
        const candidates = [done(objectRef.namespace, objectRef.name), plain, done(undefined, objectRef.name), done()]
        used.add(candidates.find((candidate) => granted.includes(candidate)) ?? plain)
      }
      allow(verb)
      // An apply that makes its object is asked for both.
      if (verb === "patch" && code === 201) allow("create")
    }
    return { used: [...used].sort(), denied: [...denied].sort() }
  })
