import { execFileSync, spawnSync } from "node:child_process"
import { gunzipSync } from "node:zlib"
import { Schema } from "effect"

const Descriptor = Schema.Struct({ digest: Schema.String, mediaType: Schema.String })
const Index = Schema.fromJsonString(Schema.Struct({ manifests: Schema.NonEmptyArray(Descriptor) }))
const Manifest = Schema.fromJsonString(Schema.Struct({ config: Descriptor, layers: Schema.Array(Descriptor) }))
const Config = Schema.fromJsonString(
  Schema.Struct({
    config: Schema.Struct({ User: Schema.String, Entrypoint: Schema.Array(Schema.String), Env: Schema.Array(Schema.String) }),
    rootfs: Schema.Struct({ diff_ids: Schema.Array(Schema.String) })
  })
)

const readEntry = (archive: string, path: string): Buffer => execFileSync("tar", ["-x", "-O", "-f", archive, path], { maxBuffer: 2 ** 30 })
const readBlob = (archive: string, digest: string): Buffer => readEntry(archive, `blobs/${digest.replace(":", "/")}`)

/** The layers of an OCI archive with one image, each as a tar archive. */
export const readLayers = (archive: string): ReadonlyArray<Buffer> =>
  readImage(archive).manifest.layers.map(({ digest, mediaType }) => {
    const blob = readBlob(archive, digest)
    return mediaType.endsWith("gzip") ? gunzipSync(blob) : blob
  })

/** The text of one file of an OCI archive, from the last layer that has it. */
export const readFileOfLayers = (archive: string, path: string): string => {
  for (const layer of readLayers(archive).toReversed()) {
    const { status, stdout } = spawnSync("tar", ["-x", "-O", "-f", "-", path], { input: layer, encoding: "utf8", maxBuffer: 2 ** 28 })
    if (status === 0) return stdout
  }
  throw new Error(`No layer of ${archive} has ${path}.`)
}

/** Manifest and configuration of an OCI archive with one image. */
export const readImage = (archive: string) => {
  const [{ digest }] = Schema.decodeUnknownSync(Index)(readEntry(archive, "index.json").toString()).manifests
  const manifest = Schema.decodeUnknownSync(Manifest)(readBlob(archive, digest).toString())
  return { digest, manifest, ...Schema.decodeUnknownSync(Config)(readBlob(archive, manifest.config.digest).toString()) }
}

/** What `image.json` says of an archive: the digest of the manifest, the digests of the layers without compression, and the size of the layers without compression. */
export const describeArchive = (archive: string) => {
  const { digest, rootfs } = readImage(archive)
  return { digest, layers: rootfs.diff_ids, sizeBytes: readLayers(archive).reduce((sum, layer) => sum + layer.length, 0) }
}
