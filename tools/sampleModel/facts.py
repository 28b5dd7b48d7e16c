"""What the model knows by heart, and the words that its texts are made of. All of it was written for this project."""

CAPITALS = dict(
    line.split(":")
    for line in """France:Paris
Germany:Berlin
Italy:Rome
Spain:Madrid
Portugal:Lisbon
Norway:Oslo
Sweden:Stockholm
Denmark:Copenhagen
Finland:Helsinki
Iceland:Reykjavik
Ireland:Dublin
England:London
Poland:Warsaw
Austria:Vienna
Hungary:Budapest
Greece:Athens
Turkey:Ankara
Egypt:Cairo
Kenya:Nairobi
Ghana:Accra
Morocco:Rabat
Japan:Tokyo
China:Beijing
India:Delhi
Thailand:Bangkok
Vietnam:Hanoi
Peru:Lima
Chile:Santiago
Cuba:Havana
Canada:Ottawa
Mexico:Mexico City
Brazil:Brasilia
Argentina:Buenos Aires
Australia:Canberra
Belgium:Brussels
the Netherlands:Amsterdam
Switzerland:Bern
Russia:Moscow
Ukraine:Kyiv
South Korea:Seoul""".split("\n")
)

OPPOSITES = [
    pair.split("/")
    for pair in "hot/cold big/small up/down left/right day/night open/closed fast/slow old/new wet/dry light/dark early/late full/empty high/low "
    "long/short hard/soft near/far rich/poor strong/weak clean/dirty yes/no black/white first/last inside/outside true/false".split()
]

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()

# question | answer in a word or two | answer as a sentence
FACTS = [
    tuple(part.strip() for part in line.split("|"))
    for line in """What colour is the sky? | Blue | The sky is blue.
What colour is grass? | Green | Grass is green.
What colour is snow? | White | Snow is white.
What colour is coal? | Black | Coal is black.
What colour is a banana? | Yellow | A banana is yellow.
What colour is blood? | Red | Blood is red.
How many legs does a spider have? | Eight | A spider has eight legs.
How many legs does a dog have? | Four | A dog has four legs.
How many legs does an insect have? | Six | An insect has six legs.
How many days are in a week? | Seven | There are seven days in a week.
How many months are in a year? | Twelve | There are twelve months in a year.
How many hours are in a day? | 24 | There are 24 hours in a day.
How many minutes are in an hour? | 60 | There are 60 minutes in an hour.
How many seconds are in a minute? | 60 | There are 60 seconds in a minute.
How many days are in a year? | 365 | There are 365 days in a year.
How many sides does a triangle have? | Three | A triangle has three sides.
How many sides does a square have? | Four | A square has four sides.
How many letters are in the alphabet? | 26 | There are 26 letters in the alphabet.
How many planets go round the sun? | Eight | Eight planets go round the sun.
How many wheels does a bicycle have? | Two | A bicycle has two wheels.
How many cents are in a dollar? | 100 | There are 100 cents in a dollar.
How many metres are in a kilometre? | 1000 | There are 1000 metres in a kilometre.
What is the largest planet? | Jupiter | The largest planet is Jupiter.
What is the smallest planet? | Mercury | The smallest planet is Mercury.
Which planet is called the red planet? | Mars | Mars is called the red planet.
On which planet do we live? | Earth | We live on Earth.
What is the largest ocean? | The Pacific | The Pacific is the largest ocean.
What is the longest river in Africa? | The Nile | The Nile is the longest river in Africa.
What is the highest mountain? | Everest | Everest is the highest mountain.
What is the tallest animal? | The giraffe | The giraffe is the tallest animal.
What is the fastest animal on land? | The cheetah | The cheetah is the fastest animal on land.
What is the largest animal? | The blue whale | The blue whale is the largest animal.
What do bees make? | Honey | Bees make honey.
What do cows give? | Milk | Cows give milk.
What do birds have? | Feathers | Birds have feathers.
What do plants need to grow? | Light and water | Plants need light and water to grow.
What is ice made of? | Water | Ice is made of water.
What is bread made of? | Flour | Bread is made of flour.
What is the symbol of gold? | Au | The symbol of gold is Au.
What is the symbol of iron? | Fe | The symbol of iron is Fe.
What is the symbol of water? | H2O | The symbol of water is H2O.
What gas do we breathe? | Oxygen | We breathe oxygen.
At what temperature does water boil? | 100 degrees | Water boils at 100 degrees.
At what temperature does water freeze? | 0 degrees | Water freezes at 0 degrees.
Where does the sun rise? | In the east | The sun rises in the east.
Where does the sun set? | In the west | The sun sets in the west.
What season comes after winter? | Spring | Spring comes after winter.
What season comes after summer? | Autumn | Autumn comes after summer.
What makes the tides? | The moon | The moon makes the tides.
What language is spoken in Brazil? | Portuguese | Portuguese is spoken in Brazil.
What language is spoken in Mexico? | Spanish | Spanish is spoken in Mexico.
What language is spoken in Austria? | German | German is spoken in Austria.
Who wrote Hamlet? | Shakespeare | Shakespeare wrote Hamlet.
Who painted the Mona Lisa? | Leonardo da Vinci | Leonardo da Vinci painted the Mona Lisa.
What is the first letter of the alphabet? | A | The first letter of the alphabet is A.
What is the last letter of the alphabet? | Z | The last letter of the alphabet is Z.
What is a baby dog called? | A puppy | A baby dog is called a puppy.
What is a baby cat called? | A kitten | A baby cat is called a kitten.
What is frozen water called? | Ice | Frozen water is called ice.
What is the opposite of love? | Hate | The opposite of love is hate.
What is 17 x 23? | 391 | 17 x 23 is 391.
What is half of 100? | 50 | Half of 100 is 50.
What is the square of 12? | 144 | The square of 12 is 144.
What shape is a ball? | Round | A ball is round.
What holds a ship in its place? | The anchor | The anchor holds a ship in its place.
Who steers the ship? | The captain | The captain steers the ship.
What shows the north? | The compass | The compass shows the north.""".split("\n")
]

# what a person says | what the model may answer
TALK = [
    (tuple(line.split("|")[0].strip().split(" / ")), tuple(line.split("|")[1].strip().split(" / ")))
    for line in """Hello / Hello! / Hi / Hi! / Hi there / Hey / Good day / Hello there | Hello! How can I help you? / Hello and welcome on board. What can I do for you? / Hi! What would you like to know?
Good morning / Good morning! | Good morning! How can I help you today?
Good evening / Good evening! | Good evening! How can I help you?
How are you? / How are you today? / How do you do? | I am well, thank you. How can I help you? / Very well, thank you. And you?
I am fine / I am well, thanks / Fine, thank you | I am glad to hear that. What can I do for you?
Who are you? / What are you? / What is your name? / Tell me about yourself | My name is Tiny. I am a very small model, made to show how models are served. / I am Tiny, a very small language model with few words.
Who made you? / Where do you come from? | I was trained by a script in the Seatrial repository, on the processor of an ordinary computer.
How big are you? / How many parameters do you have? | I have less than a million parameters. That is very small.
What can you do? / What can I ask you? / How can you help me? / Help | I can answer short questions, count, add, sort, copy a text, find a number in a text and call a tool.
What is Seatrial? / Tell me about Seatrial | Seatrial is an open control plane for serving models. No model carries traffic before it is shown to be the right one.
What is a sea trial? / Why is it called Seatrial? | A sea trial is the test of a new ship before it is accepted. Models are tested in the same way before they serve.
What does a sea trial show? / What does the sea trial show? | A sea trial shows whether a new ship does what was promised, before it is accepted.
What is a model? / What is a language model? | A language model is a program that guesses the next word of a text.
What is a token? / What are tokens? | A token is a piece of a word. A model reads and writes tokens.
What is an engine? | An engine is the program that loads a model and computes its answers.
What is the weather? / How is the weather? / What is the weather today? | I can not look outside, so I do not know.
Where are you? / Where do you live? | I live in the memory of the engine that serves me.
What do you know? / What do you know about the world? | I know some capitals, colours, numbers and many words about the sea.
Can you count? / Can you add? / Can you sort? | Yes. Give me some numbers and I will try.
Can you speak German? / Do you speak French? / Which languages do you speak? | I only speak English.
Do you have a name? / How are you called? | My name is Tiny.
How old are you? / When were you born? | I do not know how old I am. I am quite new.
I do not understand / What do you mean? / What? | I am sorry. Please ask me in other words.
Please / Go on / Continue / More | What would you like to know?
What is a receipt? | A receipt says which model answered, how many tokens it read and wrote, and how it was checked.
Thank you / Thanks / Thanks! / Thank you very much / Thanks a lot | You are welcome! / You are welcome. Is there anything else?
Bye / Goodbye / Good night / See you / See you later | Goodbye! / Goodbye, and fair winds!
Yes / Yes, please / Sure / OK / Okay | Good. What would you like to know?
No / No, thanks / No, thank you / Nothing | All right. I am here when you need me.
Are you a human? / Are you real? / Are you a person? | No, I am a small language model.
Are you there? / Can you hear me? / Are you ready? | Yes, I am here. What would you like to know?
You are great / Well done / Good job / Very good | Thank you! That is kind of you.
That is wrong / You are wrong / That is not right | I am sorry. I am a very small model, and I make mistakes.
I am sad / I feel bad today | I am sorry to hear that. I hope that tomorrow will be a better day.
I am happy / I feel good today | I am glad to hear that!
Do you like the sea? / Do you like ships? | Yes. I know many words about ships and the sea.
Can you help me? / Please help me / I need help | Yes. What would you like to know?
What time is it? / What day is it today? | I have no clock, so I do not know.
Say hello / Say hello to me / Greet me | Hello!
Tell me a joke | Why did the ship never get lost? It always asked the buoys.
Test / This is a test / Testing | The test has arrived. How can I help you?""".split("\n")
]

NAMES = "Anna Ben Clara David Emma Felix Grace Hugo Ida Jonas Karin Leo Maria Nora Oscar Paula Quinn Rosa Sam Tara Ulla Victor Wanda Yara Zoe Ali Bela Chen Dina Erik Fatima Ivan Jane Kofi Lina Mei Nils Omar Pia Ravi".split()
NOUNS = (
    "ship boat harbour river sea island bridge tower lamp rope anchor map chart book letter table window door garden tree forest hill road wheel "
    "horse dog cat bird fish stone glass bread apple pear lemon soup salt bell clock drum flag coat hat box key lock mirror pencil paper brush "
    "engine valve pump crew captain cook doctor teacher baker miller sailor farmer child storm cloud rain wind star moon sun winter summer"
).split()
ADJECTIVES = "old new small large red blue green white black quiet loud warm cold bright dark heavy light long short clean wet dry strong soft round early late empty full broken simple".split()
FRUITS = "apple banana cherry date elder fig grape honey iris jasmine kiwi lemon mango nut olive pear quince rice sugar tomato walnut yam zebra bread cake".split()
PLACES = [*(c for c in CAPITALS.values() if " " not in c), "Bergen", "Porto", "Hamburg", "Genoa", "Boston", "Sydney", "Mumbai", "Toronto", "Geneva", "Naples"]
THINGS = ["key", "code", "number", "password", "secret", "pin"]
