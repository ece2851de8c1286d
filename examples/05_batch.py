"""Many questions, a few at a time, each answer as soon as it arrives."""

from _service import service

from langchain_svc import ChatSvc

questions = [f"What is {n} * {n}?" for n in range(1, 25)]

with service() as where, ChatSvc(model="svc-turbo", **where) as model:
    limits = {"max_concurrency": 6}

    # One failure does not end the others: it comes in the place of its answer.
    for number, answer in model.batch_as_completed(
        questions, limits, return_exceptions=True
    ):
        said = answer if isinstance(answer, Exception) else answer.text
        print(f"{number:2}  {questions[number]}  {said}")

    # batch() is the same with the answers in the order of the questions.
    answers = model.batch(questions[:3], limits)
    print([answer.text for answer in answers])
