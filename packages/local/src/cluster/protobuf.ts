import { fieldsAt, type Json, type JsonObject, textAt } from "./Json.ts"

/** How a field is read: a scalar, a message, or a map with string keys. Repeated fields are lists. */
type Field =
  | { readonly name: string; readonly as: "text" | "base64" | "flag" | "number"; readonly repeated?: true }
  | { readonly name: string; readonly as: "map"; readonly of: "text" | "base64" }
  | { readonly name: string; readonly message: Message; readonly repeated?: true }
type Message = Readonly<Record<number, Field>>

const objectMeta: Message = {
  1: { name: "name", as: "text" },
  2: { name: "generateName", as: "text" },
  3: { name: "namespace", as: "text" },
  11: { name: "labels", as: "map", of: "text" },
  12: { name: "annotations", as: "map", of: "text" },
  14: { name: "finalizers", as: "text", repeated: true }
}
const metadata: Field = { name: "metadata", message: objectMeta }
const reference: Message = { 1: { name: "name", as: "text" } }

/** The kinds that `kubectl create KIND` always sends as protobuf. All other kinds arrive as JSON. */
const messages: Readonly<Record<string, Message>> = {
  Namespace: { 1: metadata },
  ConfigMap: {
    1: metadata,
    2: { name: "data", as: "map", of: "text" },
    3: { name: "binaryData", as: "map", of: "base64" },
    4: { name: "immutable", as: "flag" }
  },
  Secret: {
    1: metadata,
    2: { name: "data", as: "map", of: "base64" },
    3: { name: "type", as: "text" },
    4: { name: "stringData", as: "map", of: "text" },
    5: { name: "immutable", as: "flag" }
  },
  ServiceAccount: { 1: metadata, 3: { name: "imagePullSecrets", message: reference, repeated: true } },
  DeleteOptions: {
    1: { name: "gracePeriodSeconds", as: "number" },
    2: { name: "preconditions", message: { 1: { name: "uid", as: "text" }, 2: { name: "resourceVersion", as: "text" } } },
    3: { name: "orphanDependents", as: "flag" },
    4: { name: "propagationPolicy", as: "text" },
    5: { name: "dryRun", as: "text", repeated: true }
  }
}

interface Wire {
  readonly field: number
  readonly number: number
  readonly bytes: Buffer
}

/** The fields of an encoded message in order. Stops if the bytes are truncated. */
const wires = (bytes: Buffer): ReadonlyArray<Wire> => {
  const fields: Array<Wire> = []
  let position = 0
  const varint = (): number => {
    let value = 0n
    for (let shift = 0n; position < bytes.length; shift += 7n) {
      const byte = bytes[position++] ?? 0
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) break
    }
    return Number(BigInt.asIntN(64, value))
  }
  while (position < bytes.length) {
    const tag = varint()
    const [field, type] = [Math.floor(tag / 8), tag % 8]
    const number = type === 0 ? varint() : 0
    const length = type === 2 ? varint() : type === 1 ? 8 : type === 5 ? 4 : 0
    fields.push({ field, number, bytes: bytes.subarray(position, position + length) })
    position += Math.max(0, length)
  }
  return fields
}

const valueOf = (field: Field, { bytes, number }: Wire): Json | undefined => {
  if ("message" in field) return messageOf(field.message, bytes)
  switch (field.as) {
    case "text":
      return bytes.length === 0 ? undefined : bytes.toString("utf8")
    case "base64":
      return bytes.toString("base64")
    case "flag":
      return number !== 0
    case "number":
      return number
    case "map": {
      const [key, value] = [1, 2].map((part) => wires(bytes).find((wire) => wire.field === part)?.bytes ?? Buffer.alloc(0))
      return { [key?.toString("utf8") ?? ""]: value?.toString(field.of === "text" ? "utf8" : "base64") ?? "" }
    }
  }
}

const messageOf = (message: Message, bytes: Buffer): JsonObject => {
  const object: Record<string, Json> = {}
  for (const wire of wires(bytes)) {
    const field = message[wire.field]
    const value = field === undefined ? undefined : valueOf(field, wire)
    if (field === undefined || value === undefined) continue
    const known = object[field.name]
    if ("repeated" in field) object[field.name] = [...(Array.isArray(known) ? known : []), value]
    else if ("as" in field && field.as === "map") object[field.name] = Object.assign({}, known, value)
    else object[field.name] = value
  }
  return object
}

const envelope: Message = { 1: { name: "type", message: { 1: { name: "apiVersion", as: "text" }, 2: { name: "kind", as: "text" } } } }

/** Converts a protobuf body (`k8s\0`, then the envelope) to JSON; undefined if its kind is not supported. */
export const fromProtobuf = (body: Buffer): JsonObject | undefined => {
  if (!body.subarray(0, 4).equals(Buffer.from("k8s\0"))) return undefined
  const outer = body.subarray(4)
  const type = fieldsAt(messageOf(envelope, outer), "type")
  const raw = wires(outer).find(({ field }) => field === 2)?.bytes
  const message = messages[textAt(type, "kind")]
  return message === undefined || raw === undefined ? undefined : { ...type, ...messageOf(message, raw) }
}
