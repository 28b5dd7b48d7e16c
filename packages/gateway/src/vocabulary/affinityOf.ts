const longest = 1_024

/** The beginning of what the engine reads, up to the first turn of the user, or what the caller says in its place: requests that share it are best sent to the same engine. */
export const affinityOf = (body: Readonly<Record<string, unknown>>): string => {
  const { input, instructions, messages = input, prompt, prompt_cache_key, system = instructions, tools } = body
  if (typeof prompt_cache_key === "string") return prompt_cache_key.slice(0, longest)
  if (typeof prompt === "string") return prompt.slice(0, longest)
  if (Array.isArray(prompt)) return JSON.stringify(prompt.slice(0, longest)).slice(0, longest)
  let beginning = tools === undefined ? "" : JSON.stringify(tools).slice(0, longest)
  if (system !== undefined) beginning += JSON.stringify(system).slice(0, longest)
  if (typeof messages === "string") return (beginning + messages.slice(0, longest)).slice(0, longest)
  for (const message of Array.isArray(messages) ? messages : []) {
    if (beginning.length >= longest) break
    const { content, role } = message
    const said = typeof content === "string" ? content : JSON.stringify((content ?? []).slice(0, 4))
    beginning += `${role}:${said.slice(0, longest - beginning.length)}\n`
    if (role === "user") break
  }
  return beginning.slice(0, longest)
}
