import { Schema } from "effect"

/** The kind of object that a call refers to, and the schema for its JSON. */
export interface Resource<A extends KubeObject> {
  /** `""` for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
  readonly namespaced: boolean
  readonly schema: Schema.Codec<A, unknown>
}

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: ReadonlyArray<string>
  readonly ownerReferences?: ReadonlyArray<OwnerReference>
}

export interface KubeObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMeta
}

export interface Selection {
  /** Absent: all namespaces, or a cluster-scoped resource. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

/** The key of an object within its kind: `namespace/name`, or `/name` without a namespace. */
export const keyOf = (object: KubeObject): string => toKey(object.metadata.name, object.metadata.namespace)

/** The key for a name; see `keyOf`. */
export const toKey = (name: string, namespace?: string): string => `${namespace ?? ""}/${name}`

/** Name and namespace of a key; see `keyOf`. */
export const fromKey = (key: string): { readonly name: string; readonly namespace?: string } => {
  const slash = key.indexOf("/")
  const name = key.slice(slash + 1)
  return slash <= 0 ? { name } : { name, namespace: key.slice(0, slash) }
}

export const apiVersionOf = (resource: Resource<KubeObject>): string => (resource.group === "" ? resource.version : `${resource.group}/${resource.version}`)

/** The path of a collection, of an object in it, or of a subresource of that object. */
export const pathOf = (resource: Resource<KubeObject>, namespace: string | undefined, name?: string, subresource?: string): string => {
  const root = resource.group === "" ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`
  const within = resource.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : ""
  const object = name === undefined ? "" : `/${encodeURIComponent(name)}`
  return `${root}${within}/${resource.plural}${object}${subresource === undefined ? "" : `/${subresource}`}`
}

/** A struct that preserves unknown fields, so that reading and writing an object loses nothing. */
export function open<const Fields extends { readonly [key: string]: Schema.Codec<unknown, unknown> }>(
  fields: Fields
): Schema.Codec<Schema.Struct<Fields>["Type"], unknown>
export function open(fields: { readonly [key: string]: Schema.Codec<unknown, unknown> }): Schema.Codec<unknown, unknown> {
  return Schema.StructWithRest(Schema.Struct(fields), [Schema.Record(Schema.String, Schema.Unknown)])
}

const OwnerReferenceSchema = open({
  apiVersion: Schema.String,
  kind: Schema.String,
  name: Schema.String,
  uid: Schema.String,
  controller: Schema.optionalKey(Schema.Boolean),
  blockOwnerDeletion: Schema.optionalKey(Schema.Boolean)
})

const Labels = Schema.Record(Schema.String, Schema.String)

/** The schema of `metadata`. It preserves unknown fields. */
export const ObjectMetaSchema: Schema.Codec<ObjectMeta, unknown> = open({
  name: Schema.String,
  namespace: Schema.optionalKey(Schema.String),
  uid: Schema.optionalKey(Schema.String),
  resourceVersion: Schema.optionalKey(Schema.String),
  generation: Schema.optionalKey(Schema.Number),
  creationTimestamp: Schema.optionalKey(Schema.String),
  deletionTimestamp: Schema.optionalKey(Schema.String),
  labels: Schema.optionalKey(Labels),
  annotations: Schema.optionalKey(Labels),
  finalizers: Schema.optionalKey(Schema.Array(Schema.String)),
  ownerReferences: Schema.optionalKey(Schema.Array(OwnerReferenceSchema))
})

/**
 * The schema of an object with these fields in addition to `apiVersion`, `kind` and `metadata`. It preserves unknown
 * fields.
 */
export const objectSchema = <const Fields extends { readonly [key: string]: Schema.Codec<unknown, unknown> }>(fields: Fields) =>
  open({ apiVersion: Schema.optionalKey(Schema.String), kind: Schema.optionalKey(Schema.String), metadata: ObjectMetaSchema, ...fields })

/**
 * A kind of object;
 * `defineResource({ group: "example.dev", version: "v1", plural: "things", kind: "Thing", namespaced: true, schema: objectSchema({ spec }) })`.
 */
export const defineResource = <A extends KubeObject>(definition: Resource<A>): Resource<A> => definition
