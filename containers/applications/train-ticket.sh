#!/bin/bash
# Run one service of TrainTicket in the stack of docker-compose.yml: train-ticket NAME
# Environment: BARRIER, where somebody waits for a refund: look-up, answer, automatic, or none for nobody.
set -euo pipefail
name=$1 barrier=${BARRIER:-look-up}
export OTEL_SERVICE_NAME=$name

at() { echo "--train-ticket.$1-url=http://train-ticket-$1:8080"; }
mysql() { echo "jdbc:mysql://mysql-$1:3306/app?allowPublicKeyRetrieval=true"; }
mongodb() { echo "mongodb://mongodb-$1:27017/?directConnection=true"; }
# The pool for a region, of the service `order`.
pool() { printf -- "--train-ticket.$1.%s\n" "jdbc-url=$(mysql "$2")" username=app password=app; }

sql=(--spring.datasource.url="$(mysql us)" --spring.datasource.username=app --spring.datasource.password=app)
queues=(--spring.rabbitmq.addresses=rabbitmq-us:5672 --train-ticket.refunds-queue=refunds
    --train-ticket.notifications-queue=notifications)
refunds=(--spring.data.mongodb.database=train_ticket)
away=("${refunds[@]}" --spring.data.mongodb.uri="$(mongodb eu)" --antipode.mongodb.reads-from=replica)

module=$name settings=()
case $name in
    user | payment) settings=("${sql[@]}") ;;
    order | order-other)
        module=order
        [[ $name == order ]] && table=orders || table=orders_other
        mapfile -t settings < <(pool primary us && pool replica eu)
        settings+=(--train-ticket.table="$table" --antipode.mysql.pools.replica.reads-from=replica
            --antipode.mysql.pools.primary.datastore="${table/_/-}"
            --antipode.mysql.pools.replica.datastore="${table/_/-}")
        ;;
    auth) settings=("$(at user)" --spring.data.redis.url=redis://redis-us:6379) ;;
    cancel)
        settings=("$(at auth)" "$(at user)" "${queues[@]}" "${away[@]}"
            --train-ticket.order-urls=http://train-ticket-order:8080,http://train-ticket-order-other:8080)
        [[ $barrier != answer ]] || settings+=(--train-ticket.barrier-before-answer=true)
        ;;
    inside-payment)
        settings=("$(at payment)" "${queues[@]}" "${refunds[@]}" --spring.data.mongodb.uri="$(mongodb us)")
        ;;
    look-up)
        module=inside-payment
        settings=("$(at payment)" "${queues[@]}" "${away[@]}" --train-ticket.makes-refunds=false)
        [[ $barrier != look-up ]] || settings+=(--train-ticket.barrier-at-look-up=true)
        [[ $barrier != automatic ]] || settings+=(--antipode.barriers=auto)
        ;;
    notification)
        export HOST=0.0.0.0 PORT=8080 REDIS_URL=redis://redis-us:6379 MONGODB_DATABASE=train_ticket \
            RABBITMQ_URL=amqp://guest:guest@rabbitmq-us:5672/%2f NOTIFICATIONS_QUEUE=notifications \
            TRAIN_TICKET_ANTIPODE=yes TRAIN_TICKET_NOTIFICATION_WAITS=yes TRAIN_TICKET_REPLICA=yes
        MONGODB_URL=$(mongodb eu) exec python -m benchmarks.train_ticket.notification
        ;;
    data) exec python -m benchmarks.train_ticket._stack ;;
    *) echo "error: there is no service $name" >&2 && exit 2 ;;
esac

class=$(cd "java/$module/classes" && find . -name '*Application.class')
class=${class#./} class=${class%.class}
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k -Xmx96m -cp "java/$module/classes:java/$module/lib/*" \
    "${class//\//.}" --server.address=0.0.0.0 --server.port=8080 "${settings[@]}"
