/** Members whose value is text. An unescaped quotation mark cannot stand inside a JSON string, so that none of these is the model's words. */
const reasoning = /"reasoning":("(?:[^"\\]|\\.)*")/g
const reasoningContent = /"reasoning_content":("(?:[^"\\]|\\.)*")/g
const nulls = /,"reasoning(?:_content)?":null|"reasoning(?:_content)?":null,/g

/** Gives reasoning both of its names, whichever the engine wrote: clients look for one or the other. */
export const withBothNames = (json: string): string => {
  if (!json.includes('"reasoning')) return json
  const own = json.includes('"reasoning":"')
  if (own === json.includes('"reasoning_content":"')) return json
  const texts = json.replace(nulls, "")
  return own
    ? texts.replace(reasoning, (member, value: string) => `${member},"reasoning_content":${value}`)
    : texts.replace(reasoningContent, (member, value: string) => `"reasoning":${value},${member}`)
}
