import { Schema } from "effect"
import { parseAllDocuments } from "yaml"

/** One thing that is allowed or was done, such as `seatrial list pods` (in that namespace), `cluster watch nodes` or, of one object, `seatrial get leases.coordination.k8s.io name`. */
export type Permission = string

const Role = Schema.Struct({
  kind: Schema.Literals(["Role", "ClusterRole"]),
  metadata: Schema.Struct({ namespace: Schema.optionalKey(Schema.String) }),
  rules: Schema.Array(
    Schema.Struct({
      apiGroups: Schema.Array(Schema.String),
      resources: Schema.Array(Schema.String),
      verbs: Schema.Array(Schema.String),
      resourceNames: Schema.optionalKey(Schema.Array(Schema.String))
    })
  )
})

/** `deployments.apps` and `deployments.apps/scale`; the core group has no name. */
const resourceOf = (group: string, resource: string) => {
  const [plural = "", subresource] = resource.split("/")
  return `${plural}${group === "" ? "" : `.${group}`}${subresource === undefined ? "" : `/${subresource}`}`
}

export const permission = (namespace: string | undefined, verb: string, group: string, resource: string, name?: string): Permission =>
  `${namespace ?? "cluster"} ${verb} ${resourceOf(group, resource)}${name === undefined ? "" : ` ${name}`}`

/** What the Roles and ClusterRoles in a text of YAML allow, one by one and in order. */
export const rulesOf = (text: string): ReadonlyArray<Permission> =>
  parseAllDocuments(text)
    .map((document): unknown => document.toJS())
    .filter(Schema.is(Role))
    .flatMap(({ metadata, rules }) =>
      rules.flatMap(({ apiGroups, resourceNames = [undefined], resources, verbs }) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((resource) => verbs.flatMap((verb) => resourceNames.map((name) => permission(metadata.namespace, verb, group, resource, name))))
        )
      )
    )
    .sort()
