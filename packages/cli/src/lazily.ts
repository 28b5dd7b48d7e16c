import { Command } from "effect/cli"

/** What asks for a description of every command. */
const forAll = /^--(?:completions|wizard)/

/** A command with modules of its own, which are loaded only where the arguments name it: elsewhere its name and a sentence are enough. */
export const lazily = async <const Name extends string, E, R>(
  args: ReadonlyArray<string>,
  name: Name,
  what: string,
  load: () => Promise<Command.Command<Name, never, object, E, R>>
): Promise<Command.Command<Name, never, object, E, R>> =>
  args.some((argument) => argument === name || forAll.test(argument)) ? await load() : Command.make(name).pipe(Command.withDescription(what))
