import { Option, Schema } from "effect"
import { parseAllDocuments } from "yaml"

const Text = Schema.optionalKey(Schema.NullOr(Schema.String))
const list = <S extends Schema.Constraint>(item: S) => Schema.optionalKey(Schema.NullOr(Schema.Array(item)))

const Container = Schema.Struct({ image: Text, env: list(Schema.Struct({ name: Schema.String, value: Schema.optionalKey(Schema.Unknown) })) })
const PodSpec = Schema.Struct({ containers: list(Container), initContainers: list(Container) })
const Template = Schema.Struct({ spec: Schema.optionalKey(PodSpec) })
const ContainerStatus = Schema.Struct({ image: Text, imageID: Text })

/** The parts of a Kubernetes object that name images. */
const Manifest = Schema.Struct({
  kind: Schema.String,
  metadata: Schema.Struct({ name: Text, generateName: Text }),
  spec: Schema.optionalKey(
    Schema.Struct({
      ...PodSpec.fields,
      template: Schema.optionalKey(Template),
      jobTemplate: Schema.optionalKey(Schema.Struct({ spec: Schema.Struct({ template: Template }) })),
      runtimes: list(Schema.Struct({ image: Text }))
    })
  ),
  status: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        engineImage: Text,
        engineDigest: Text,
        containerStatuses: list(ContainerStatus),
        initContainerStatuses: list(ContainerStatus)
      })
    )
  )
})
type Manifest = typeof Manifest.Type
const decodeManifest = Schema.decodeUnknownOption(Manifest)
const decodeItems = Schema.decodeUnknownOption(Schema.Struct({ items: Schema.Array(Schema.Unknown) }))

/**
 * An image that an installation pulls. `digest` is null if no manifest has it. `used_by` has the objects that name the
 * image, as `Kind/name`.
 */
type PulledImage = { readonly image: string; readonly digest: string | null; readonly used_by: ReadonlyArray<string> }

interface Reference {
  readonly image: string
  readonly digest: string | null
}

const digestOf = (text: string): string | null => /@(sha256:[0-9a-f]{64})$/u.exec(text)?.[1] ?? null
const referenceOf = (image: string): Reference => ({ image, digest: digestOf(image) })

/** The variable of the operator with the image of downloads, which no container of the chart runs under that name. */
const fetchImageVariable = "OPERATOR_FETCH_IMAGE"

const ofContainers = ({ containers, initContainers }: typeof PodSpec.Type): ReadonlyArray<Reference> =>
  [...(containers ?? []), ...(initContainers ?? [])].flatMap(({ env, image }) => {
    const fetchImages = (env ?? []).filter(({ name }) => name === fetchImageVariable).map(({ value }) => value)
    return [image, ...fetchImages].flatMap((name) => (typeof name === "string" && name !== "" ? [referenceOf(name)] : []))
  })

const ofStatus = ({ status }: Manifest): ReadonlyArray<Reference> => {
  const { containerStatuses, engineDigest, engineImage, initContainerStatuses } = status ?? {}
  const engine = engineImage === undefined || engineImage === null ? [] : [{ image: engineImage, digest: engineDigest ?? digestOf(engineImage) }]
  const statuses = [...(containerStatuses ?? []), ...(initContainerStatuses ?? [])]
  const ran = statuses.flatMap(({ image, imageID }) => (image ? [{ image, digest: digestOf(imageID ?? "") ?? digestOf(image) }] : []))
  return [...engine, ...ran]
}

const ofManifest = (manifest: Manifest): ReadonlyArray<Reference> => {
  const { spec } = manifest
  const specs = [spec, spec?.template?.spec, spec?.jobTemplate?.spec.template.spec].flatMap((each) => (each === undefined ? [] : [each]))
  const engines = (spec?.runtimes ?? []).flatMap(({ image }) => (image ? [referenceOf(image)] : []))
  return [...specs.flatMap(ofContainers), ...engines, ...ofStatus(manifest)]
}

/** The objects of a parsed document. A list, as `kubectl get -o yaml` prints it, has many. */
const manifestsOf = (document: unknown): ReadonlyArray<Manifest> =>
  Option.match(decodeItems(document), {
    onSome: ({ items }) => items.flatMap(manifestsOf),
    onNone: () => Option.toArray(decodeManifest(document))
  })

/** Parses Kubernetes manifests, YAML or JSON. Null if the text is neither. */
export const parseManifests = (text: string): ReadonlyArray<Manifest> | null => {
  const documents = parseAllDocuments(text)
  if (documents.some(({ errors }) => errors.length > 0)) return null
  return documents.flatMap((document) => manifestsOf(document.toJS()))
}

/** Lists each image that the manifests name, by name, with its digest if any of them has one. */
export const imageList = (manifests: ReadonlyArray<Manifest>): ReadonlyArray<PulledImage> => {
  const images = new Map<string, { digest: string | null; readonly users: Set<string> }>()
  for (const manifest of manifests) {
    const user = `${manifest.kind}/${manifest.metadata.name ?? manifest.metadata.generateName ?? ""}`
    for (const { digest, image } of ofManifest(manifest)) {
      const entry = images.get(image) ?? { digest: null, users: new Set() }
      entry.digest ??= digest
      entry.users.add(user)
      images.set(image, entry)
    }
  }
  return [...images].sort(([left], [right]) => (left < right ? -1 : 1)).map(([image, { digest, users }]) => ({ image, digest, used_by: [...users].sort() }))
}
