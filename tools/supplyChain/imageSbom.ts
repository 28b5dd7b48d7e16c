import { Schema } from "effect"

/** A component of CycloneDX; the members that are only passed on are not read. */
const Component = Schema.StructWithRest(Schema.Struct({ "bom-ref": Schema.String, name: Schema.String }), [Schema.Record(Schema.String, Schema.Unknown)])
type Component = typeof Component.Type

const Dependency = Schema.Struct({ ref: Schema.String, dependsOn: Schema.optionalKey(Schema.Array(Schema.String)) })

/** What `npm sbom --sbom-format cyclonedx` prints. */
export const NpmSbom = Schema.fromJsonString(
  Schema.Struct({
    specVersion: Schema.String,
    serialNumber: Schema.String,
    metadata: Schema.StructWithRest(Schema.Struct({ timestamp: Schema.String }), [Schema.Record(Schema.String, Schema.Unknown)]),
    components: Schema.Array(Component),
    dependencies: Schema.Array(Dependency)
  })
)
type NpmSbom = typeof NpmSbom.Type

/** The components named by `roots` and all that they need, directly or not. The walk does not enter `excluded`. `npm sbom --omit=dev` leaves out what the workspace's root names as a dependency for development too. */
export const reachable = (
  { components, dependencies }: NpmSbom,
  roots: ReadonlyArray<string>,
  excluded: ReadonlyArray<string> = []
): { components: ReadonlyArray<Component>; dependencies: NpmSbom["dependencies"] } => {
  const needs = new Map(dependencies.map(({ dependsOn = [], ref }) => [ref, dependsOn]))
  const refs = new Set<string>()
  const skipped = new Set(excluded)
  const queue = components.filter((component) => roots.includes(component["bom-ref"])).map((component) => component["bom-ref"])
  for (let ref = queue.pop(); ref !== undefined; ref = queue.pop()) {
    if (refs.has(ref) || skipped.has(ref)) continue
    refs.add(ref)
    queue.push(...(needs.get(ref) ?? []))
  }
  return {
    components: components.filter((component) => refs.has(component["bom-ref"])),
    dependencies: dependencies.filter(({ ref }) => refs.has(ref))
  }
}

/** The Debian packages of a root file system, from the text of its `/var/lib/dpkg/status`. */
export const debianComponents = (status: string): ReadonlyArray<Component> =>
  status.split(/\n\n+/u).flatMap((paragraph) => {
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, "mu").exec(paragraph)?.[1]
    const [name, version, architecture] = [field("Package"), field("Version"), field("Architecture")]
    if (name === undefined || version === undefined || field("Status") !== "install ok installed") return []
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}${architecture === undefined ? "" : `?arch=${architecture}`}`
    return [{ "bom-ref": purl, type: "library", name, version, purl }]
  })

/** The base image by name, tag and digest, as the Containerfile names it. */
export const baseImage = (containerfile: string): { readonly name: string; readonly tag: string; readonly digest: string } => {
  const [, name, tag, digest] = /^ARG NODE=(\S+):([^\s:@]+)@sha256:([0-9a-f]{64})$/mu.exec(containerfile) ?? []
  if (name === undefined || tag === undefined || digest === undefined)
    throw new Error("The Containerfile names no base image as ARG NODE=NAME:TAG@sha256:DIGEST.")
  return { name, tag, digest }
}

interface ImageInput {
  readonly npm: NpmSbom
  readonly version: string
  readonly containerfile: string
  /** Null: no image was given, so its Debian packages are unknown. */
  readonly dpkgStatus: string | null
}

/** The bill of materials of the image: the base image that it is built on, Node, Debian's packages and npm's. */
export const imageSbom = ({ containerfile, dpkgStatus, npm, version }: ImageInput): object => {
  const { digest, name, tag } = baseImage(containerfile)
  const [nodeVersion = ""] = tag.split("-")
  const base = { "bom-ref": `base@sha256:${digest}`, type: "container", name, version: tag, hashes: [{ alg: "SHA-256", content: digest }] }
  const node = { "bom-ref": `node@${nodeVersion}`, type: "platform", name: "node", version: nodeVersion, purl: `pkg:generic/node@${nodeVersion}` }
  const debian = dpkgStatus === null ? [] : debianComponents(dpkgStatus)
  const image = { "bom-ref": `seatrial-image@${version}`, type: "container", name: "seatrial", version }
  const components = [base, node, ...debian, ...npm.components]
  return {
    $schema: `http://cyclonedx.org/schema/bom-${npm.specVersion}.schema.json`,
    bomFormat: "CycloneDX",
    specVersion: npm.specVersion,
    serialNumber: npm.serialNumber,
    version: 1,
    metadata: { timestamp: npm.metadata.timestamp, component: image },
    components,
    dependencies: [{ ref: image["bom-ref"], dependsOn: components.map((component) => component["bom-ref"]) }, ...npm.dependencies],
    compositions: [{ aggregate: dpkgStatus === null ? "incomplete" : "complete", assemblies: [base["bom-ref"]] }]
  }
}
