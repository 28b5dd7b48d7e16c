import { defineResource, objectSchema, open } from "@seatrial/kube"
import { Schema } from "effect"

const optional = Schema.optionalKey
const Labels = Schema.Record(Schema.String, Schema.String)

const Selector = open({
  matchLabels: optional(Labels),
  matchExpressions: optional(Schema.Array(open({ key: Schema.String, operator: Schema.String, values: optional(Schema.Array(Schema.String)) })))
})
export type Selector = (typeof Selector)["Type"]

const PolicyPort = open({
  port: optional(Schema.Union([Schema.Number, Schema.String])),
  endPort: optional(Schema.Number),
  protocol: optional(Schema.String)
})
export type PolicyPort = (typeof PolicyPort)["Type"]

const Peer = open({
  podSelector: optional(Selector),
  namespaceSelector: optional(Selector),
  ipBlock: optional(open({ cidr: Schema.String, except: optional(Schema.Array(Schema.String)) }))
})
export type Peer = (typeof Peer)["Type"]

const Rule = open({ ports: optional(Schema.Array(PolicyPort)), from: optional(Schema.Array(Peer)), to: optional(Schema.Array(Peer)) })
export type Rule = (typeof Rule)["Type"]

/** A network policy (`networking.k8s.io/v1`). */
export const NetworkPolicy = defineResource({
  group: "networking.k8s.io",
  version: "v1",
  plural: "networkpolicies",
  kind: "NetworkPolicy",
  namespaced: true,
  schema: objectSchema({
    spec: open({
      podSelector: optional(Selector),
      policyTypes: optional(Schema.Array(Schema.String)),
      ingress: optional(Schema.Array(Rule)),
      egress: optional(Schema.Array(Rule))
    })
  })
})
export type NetworkPolicy = (typeof NetworkPolicy.schema)["Type"]

/** A pod as far as policies are concerned: labels, address and named ports. */
export const AddressedPod = defineResource({
  group: "",
  version: "v1",
  plural: "pods",
  kind: "Pod",
  namespaced: true,
  schema: objectSchema({
    spec: open({
      hostNetwork: optional(Schema.Boolean),
      containers: Schema.Array(
        open({ ports: optional(Schema.Array(open({ name: optional(Schema.String), containerPort: Schema.Number, protocol: optional(Schema.String) }))) })
      )
    }),
    status: optional(open({ phase: optional(Schema.String), podIP: optional(Schema.String) }))
  })
})
export type AddressedPod = (typeof AddressedPod.schema)["Type"]
