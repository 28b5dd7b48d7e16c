import { text } from "node:stream/consumers"
import { Effect, FileSystem } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { CommandError } from "./CommandError.ts"
import { imageList, parseManifests } from "./imageList.ts"
import { printRows } from "./print.ts"

const readText = Effect.fnUntraced(function* (file: string) {
  if (file !== "-") {
    const files = yield* FileSystem.FileSystem
    const message = `${file} cannot be read. Name a file with Kubernetes manifests, or - for standard input.`
    return yield* files.readFileString(file).pipe(Effect.mapError(() => new CommandError({ message, exitCode: 2 })))
  }
  if (process.stdin.isTTY === true) {
    const message = "Name files with manifests, or send manifests to standard input: helm template ... | seatrial images"
    return yield* new CommandError({ message, exitCode: 2 })
  }
  return yield* Effect.promise(() => text(process.stdin))
})

const readManifests = Effect.fnUntraced(function* (file: string) {
  const manifests = parseManifests(yield* readText(file))
  if (manifests !== null) return manifests
  return yield* new CommandError({ message: `${file === "-" ? "Standard input" : file} is neither YAML nor JSON.`, exitCode: 2 })
})

/** Lists the images that manifests name, for a registry that an installation without internet access uses. */
export const imagesCommand = Command.make(
  "images",
  {
    files: Argument.String("file").pipe(
      Argument.withDescription("Files with Kubernetes manifests (YAML or JSON); - or none: standard input"),
      Argument.variadic()
    ),
    json: Flag.Boolean("json").pipe(Flag.withDescription("Print one JSON document"), Flag.withDefault(false))
  },
  Effect.fn(function* ({ files, json }) {
    const manifests = yield* Effect.forEach(files.length === 0 ? ["-"] : files, readManifests)
    const images = imageList(manifests.flat())
    // The digest has its own column.
    yield* printRows(json, json ? images : images.map((row) => ({ ...row, image: row.image.replace(/@sha256:.*$/u, "") })))
  })
).pipe(
  Command.withShortDescription("Lists the images and digests that Kubernetes manifests name, for a mirror."),
  Command.withDescription(
    "Lists the container images that Kubernetes manifests name, with digests if the manifests have them. Use the list to fill the registry of an installation without internet access. The command reads the output of `helm template`, HostClass objects, and the output of `kubectl get pods,hostclasses,modeldeployments -o yaml`, which has the digests that ran and passed a trial. It contacts neither a cluster nor a registry."
  )
)
