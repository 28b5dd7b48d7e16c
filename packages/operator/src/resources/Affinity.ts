import { Schema } from "effect"

const optional = Schema.optionalKey
const { Array: List, NonEmptyArray, Struct } = Schema
const text = (description: string) => Schema.String.annotate({ description })
const texts = (description: string) => List(Schema.String).annotate({ description })
const weight = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 })).annotate({ description: "Weight of the preference, 1 to 100." })

const NodeRequirement = Struct({
  key: text("Key of the label."),
  operator: Schema.Literals(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]).annotate({ description: "Relation of the label to the values." }),
  values: optional(texts("Values; one integer for Gt and Lt, none for Exists and DoesNotExist."))
})
export type NodeRequirement = typeof NodeRequirement.Type

const NodeTerm = Struct({
  matchExpressions: optional(List(NodeRequirement).annotate({ description: "Requirements on labels of the node. All must hold." })),
  matchFields: optional(List(NodeRequirement).annotate({ description: "Requirements on fields of the node (metadata.name). All must hold." }))
})
export type NodeTerm = typeof NodeTerm.Type

const NodeAffinity = Struct({
  requiredDuringSchedulingIgnoredDuringExecution: optional(
    Struct({
      nodeSelectorTerms: NonEmptyArray(NodeTerm).annotate({ description: "The node must match one of these terms." })
    }).annotate({ description: "Requirements on the node. Other nodes do not belong to the class." })
  ),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    List(Struct({ weight, preference: NodeTerm.annotate({ description: "The preferred nodes." }) })).annotate({ description: "Preferences among the nodes." })
  )
})

const LabelSelector = Struct({
  matchLabels: optional(Schema.Record(Schema.String, Schema.String).annotate({ description: "Labels that the object must have. All of them must match." })),
  matchExpressions: optional(
    List(
      Struct({
        key: text("Key of the label."),
        operator: Schema.Literals(["In", "NotIn", "Exists", "DoesNotExist"]).annotate({ description: "Relation of the label to the values." }),
        values: optional(texts("Values; none for Exists and DoesNotExist."))
      })
    ).annotate({ description: "Requirements on labels. All must hold." })
  )
})

const PodTerm = Struct({
  labelSelector: optional(LabelSelector.annotate({ description: "The pods to be near to, or away from." })),
  namespaces: optional(texts("Namespaces of these pods. Default: that of the engine.")),
  namespaceSelector: optional(LabelSelector.annotate({ description: "Namespaces of these pods, by label." })),
  topologyKey: text("Label of nodes whose value says which nodes are near each other, for example kubernetes.io/hostname.")
})

const podAffinity = (description: string) =>
  optional(
    Struct({
      requiredDuringSchedulingIgnoredDuringExecution: optional(List(PodTerm).annotate({ description: "Terms that must all hold." })),
      preferredDuringSchedulingIgnoredDuringExecution: optional(
        List(Struct({ weight, podAffinityTerm: PodTerm.annotate({ description: "The preferred place." }) })).annotate({ description: "Preferences." })
      )
    }).annotate({ description })
  )

/** The affinity of a pod, as Kubernetes defines it. */
export const Affinity = Struct({
  nodeAffinity: optional(NodeAffinity.annotate({ description: "Nodes that engines require or prefer." })),
  podAffinity: podAffinity("Pods near which engines are placed."),
  podAntiAffinity: podAffinity("Pods away from which engines are placed.")
})
export type Affinity = typeof Affinity.Type
