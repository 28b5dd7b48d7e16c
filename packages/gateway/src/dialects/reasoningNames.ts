/** Members with string values. Quotation marks inside JSON strings are escaped, so a match is never generated text. */
const reasoning = /"reasoning":("(?:[^"\\]|\\.)*")/g
const reasoningContent = /"reasoning_content":("(?:[^"\\]|\\.)*")/g
const nulls = /,"reasoning(?:_content)?":null|"reasoning(?:_content)?":null,/g

/** Adds the other name of reasoning text to what the engine wrote, because clients read either of them. */
export const withBothNames = (json: string): string => {
  if (!json.includes('"reasoning')) return json
  const own = json.includes('"reasoning":"')
  if (own === json.includes('"reasoning_content":"')) return json
  const texts = json.replace(nulls, "")
  return own
    ? texts.replace(reasoning, (member, value: string) => `${member},"reasoning_content":${value}`)
    : texts.replace(reasoningContent, (member, value: string) => `"reasoning":${value},${member}`)
}
