import { open, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"

/** What each program asked of the API server, and what came of it; nothing of what was in it. */
const policy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [{ level: "Metadata", userGroups: ["system:serviceaccounts:seatrial"] }, { level: "None" }]
}

/** Flags with which an API server writes down what the product's accounts ask of it, and where. */
export const prepareAudit = Effect.fnUntraced(function* (directory: string) {
  const path = join(directory, "audit.log")
  const file = join(directory, "audit-policy.json")
  yield* Effect.promise(async () => {
    await writeFile(file, JSON.stringify(policy))
    await writeFile(path, "")
  })
  return { path, flags: [`--audit-policy-file=${file}`, `--audit-log-path=${path}`] }
})

const Entry = Schema.fromJsonString(
  Schema.Struct({
    verb: Schema.String,
    requestURI: Schema.String,
    requestReceivedTimestamp: Schema.String,
    user: Schema.Struct({ username: Schema.String, extra: Schema.optionalKey(Schema.Record(Schema.String, Schema.Array(Schema.String))) }),
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
export type AuditEntry = typeof Entry.Type
const decode = Schema.decodeUnknownSync(Entry)
const decodeWhole = Schema.decodeUnknownOption(Entry)
/** A line, without the incomplete line that a killed server may have left before it. */
const readEntry = (line: string): AuditEntry => Option.getOrElse(decodeWhole(line), () => decode(line.slice(line.lastIndexOf('{"kind":"Event"'))))

const credentialId = "authentication.kubernetes.io/credential-id"
export const credentialOf = ({ user }: AuditEntry): string | undefined => user.extra?.[credentialId]?.[0]

const verbs = new Set(["create", "update", "patch", "delete"])
/** Whether it changed something; leases, by which operators agree on one, count apart. */
export const isWrite = ({ objectRef, responseStatus, verb }: AuditEntry) =>
  verbs.has(verb) && objectRef?.resource !== "leases" && (responseStatus?.code ?? 500) < 300

/** Follows an audit log: every entry so far, whenever it is asked. Half a line, as a killed server leaves one, is left out. */
export const followAudit = (path: string): Effect.Effect<ReadonlyArray<AuditEntry>> => {
  const entries: Array<AuditEntry> = []
  let read = 0
  let rest = ""
  return Effect.promise(async () => {
    const file = await open(path)
    try {
      for (;;) {
        const { buffer, bytesRead } = await file.read(Buffer.alloc(2 ** 20), 0, 2 ** 20, read)
        if (bytesRead === 0) return entries
        read += bytesRead
        const lines = (rest + buffer.subarray(0, bytesRead).toString("latin1")).split("\n")
        rest = lines.pop() ?? ""
        for (const line of lines) if (line.startsWith("{") && line.endsWith("}")) entries.push(readEntry(line))
      }
    } finally {
      await file.close()
    }
  })
}
