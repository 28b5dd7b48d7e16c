import { copyFile, mkdir, readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { NotMergeable } from "./NotMergeable.ts"

/** Files of an adapter that replace the base's files: the adapter may have been trained with other prompts. */
const overlaid = new Set(["chat_template.jinja", "tokenizer_config.json"])

/**
 * Copies all files of a base except its weights into a new folder, and the adapter's own chat template. Fails if the
 * folder exists.
 */
export const copyModelFiles = Effect.fnUntraced(function* (options: { readonly base: string; readonly adapter: string; readonly target: string }) {
  const { adapter, base, target } = options
  const filesOf = (folder: string) =>
    Effect.tryPromise({
      try: async () => (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isFile()).map(({ name }) => name),
      catch: () => new NotMergeable({ message: "A folder with weights does not exist or cannot be read." })
    })
  const own = (yield* filesOf(base)).filter((name) => !name.endsWith(".safetensors"))
  const added = (yield* filesOf(adapter)).filter((name) => overlaid.has(name))
  yield* Effect.tryPromise({
    try: () => mkdir(target),
    catch: () => new NotMergeable({ message: "The target folder cannot be created: it already exists, or its parent folder does not exist." })
  })
  const copies = [...own.map((name) => [base, name] as const), ...added.map((name) => [adapter, name] as const)]
  yield* Effect.promise(async () => {
    for (const [folder, name] of copies) await copyFile(join(folder, name), join(target, name))
  })
})
